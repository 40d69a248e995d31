package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// A script is what a server answers instead of the model: the pieces of a stream, and whether
// the connection breaks off after them.
type script struct {
	pieces []string
	breaks bool
}

// data returns an event of a stream.
func data(delta string) string {
	return `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

const done = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// scripted returns the address of a server below a path, as behind a proxy. It answers chats
// with the script and passes all other requests on to s.
func scripted(t *testing.T, s *server, answers *atomic.Pointer[script], asked *atomic.Pointer[string]) string {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/below/", http.StripPrefix("/below", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}))
	mux.HandleFunc("POST /below/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		asked.Store(&text)
		w.Header().Set("Content-Type", "text/event-stream")
		answer := answers.Load()
		for _, piece := range answer.pieces {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
		if answer.breaks {
			panic(http.ErrAbortHandler)
		}
	})
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h.URL + "/below/"
}

// TestPageStreams covers what streams can contain and how they can end: thoughts, parallel
// calls, pieces that are cut anywhere, errors, and connections that break off.
func TestPageStreams(t *testing.T) {
	s := startOpen(t, demo, "--served-model-name", "first", "--served-model-name", "second")
	var answers atomic.Pointer[script]
	var asked atomic.Pointer[string]
	b := open(t, scripted(t, s, &answers, &asked))
	b.do("the page is ready", chromedp.WaitVisible(chromedp.CSS(`main select`)))
	b.do("the other model", chromedp.SetValue(chromedp.CSS(`main select`), "second"))
	eval[bool](b, `document.querySelector('main select').dispatchEvent(new Event('change', {bubbles: true}))`)
	last := func(part string) string {
		return eval[string](b, `(() => { const all = document.querySelectorAll('article.assistant `+part+`'); return all.length ? all[all.length - 1].innerText : '' })()`)
	}
	say := func(pieces []string, breaks bool) {
		t.Helper()
		answers.Store(&script{pieces, breaks})
		b.say("Go on.")
	}

	say([]string{data(`{"reasoning_content":"Let me "}`), data(`{"reasoning_content":"think."}`), data(`{"content":"The **answer**."}`), done}, false)
	if got := last("summary"); got != "Thought · 3 words" {
		t.Errorf("the thought is shown as %q", got)
	}
	if got := last("strong"); got != "answer" {
		t.Errorf("the answer is shown as %q", got)
	}
	if open := eval[bool](b, `document.querySelector('article.assistant details').open`); open {
		t.Error("the thought is not folded")
	}

	// The bytes of a letter, of an event's name and of line ends arrive separately.
	whole := ": a comment\r\nevent: x\r\n" + strings.ReplaceAll(data(`{"content":"Größe 漢字 🦊"}`), "\n", "\r\n") + done
	pieces := make([]string, len(whole))
	for i := range len(whole) {
		pieces[i] = whole[i : i+1]
	}
	say(pieces, false)
	if got := last(".markdown"); got != "Größe 漢字 🦊" {
		t.Errorf("what was cut apart is shown as %q", got)
	}
	var request struct {
		Model    string
		Messages []struct {
			Role, Content    string
			ReasoningContent string `json:"reasoning_content"`
		}
	}
	if err := json.Unmarshal([]byte(*asked.Load()), &request); err != nil || request.Model != "second" || len(request.Messages) != 3 ||
		request.Messages[1].Content != "The **answer**." || request.Messages[1].ReasoningContent != "Let me think." {
		t.Errorf("%v, and was asked %s", err, *asked.Load())
	}

	say([]string{data(`{"content":"Half"}`), `data: {"error":{"message":"the model computed something that is no number","type":"server_error","param":null,"code":"not_finite"}}` + "\n\n"}, false)
	if text, fault := last(".markdown"), last(".fault"); text != "Half" || !strings.Contains(fault, "no number") {
		t.Errorf("a stream that fails is shown as %q, %q", text, fault)
	}
	for _, breaks := range []bool{false, true} {
		say([]string{data(`{"content":"Cut"}`)}, breaks)
		if text, fault := last(".markdown"), last(".fault"); text != "Cut" || fault == "" {
			t.Errorf("a stream that breaks off is shown as %q, %q", text, fault)
		}
	}

	call := func(i int, delta string) string {
		return data(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s}]}`, i, delta))
	}
	say([]string{
		call(0, `"id":"a","function":{"name":"one","arguments":""}`), call(1, `"id":"b","function":{"name":"two","arguments":"{\"x\""}`),
		call(0, `"function":{"arguments":"{}"}`), call(1, `"function":{"arguments":":\"<img src=x onerror=window.hit=1>\"}"}`), done,
	}, false)
	if names := eval[string](b, `[...document.querySelectorAll('.call h4')].map((h) => h.innerText.trim()).join()`); names != "one,two" {
		t.Errorf("the calls are %s", names)
	}
	if text := last(".call:last-of-type pre"); !strings.Contains(text, "<img") {
		t.Errorf("the second call is shown as %q", text)
	}

	// A script that arrives in pieces, with its tags cut.
	say([]string{data(`{"content":"<scr"}`), data(`{"content":"ipt>window.hit=2</script><img src=x on"}`), data(`{"content":"error=window.hit=3>"}`), done}, false)
	if hit := eval[int](b, `window.hit ?? 0`); hit != 0 {
		t.Errorf("script %d ran", hit)
	}
	if got := last(".markdown"); !strings.Contains(got, "<script>window.hit=2</script>") {
		t.Errorf("it is shown as %q", got)
	}
}
