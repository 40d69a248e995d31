package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A stranger's page, in a browser of the machine that a server listens on for itself alone,
// cannot show the server's page in a frame, ask the model, or take a name for the server's.
func TestPageStrangers(t *testing.T) {
	s := startOpen(t, demo)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>stranger</title>")
	}))
	t.Cleanup(stranger.Close)
	address := strings.Replace(stranger.URL, "127.0.0.1", "elsewhere.example", 1)
	b := open(t, address, chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"))
	asked := func(prefix string) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.asked, func(address string) bool { return strings.HasPrefix(address, prefix) })
	}

	eval[bool](b, `new Promise((done) => {
		const frame = Object.assign(document.createElement('iframe'), { src: '`+s.url+`/', onload: () => setTimeout(() => done(true), 500) });
		document.body.append(frame);
	})`)
	if !asked(s.url+"/") || asked(s.url+"/page/") {
		t.Errorf("the page is shown in a frame, or was not asked for: %q", b.asked)
	}

	const body = `JSON.stringify({ model: 'demo', prompt: 'x', max_tokens: 1 })`
	for _, mode := range []string{"cors", "no-cors"} {
		got := eval[string](b, `fetch('`+s.url+`/v1/completions', { method: 'POST', mode: '`+mode+`', body: `+body+` }).then((r) => r.type, (e) => e.name)`)
		if got != map[string]string{"cors": "TypeError", "no-cors": "opaque"}[mode] {
			t.Errorf("%s: a stranger's page is given %q", mode, got)
		}
	}
	for _, path := range []string{"/", "/v1/models", "/metrics"} {
		if got := eval[string](b, `fetch('`+s.url+path+`').then((r) => r.type, (e) => e.name)`); got != "TypeError" {
			t.Errorf("%s: a stranger's page is given %q", path, got)
		}
	}

	// His name now means this machine, so that to the browser he is the server.
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), ":")
	b.do("his name", chromedp.Navigate("http://stranger.example:"+port))
	if text := b.text(); !strings.Contains(text, "host_not_allowed") {
		t.Errorf("by his name the server says %s", text)
	}
	for _, path := range []string{"/v1/models", "/metrics", "/page/licences.txt"} {
		if status := eval[int](b, `fetch('`+path+`').then((r) => r.status)`); status != http.StatusForbidden {
			t.Errorf("%s: status %d by his name", path, status)
		}
	}
	if status := eval[int](b, `fetch('/v1/completions', { method: 'POST', body: `+body+` }).then((r) => r.status)`); status != http.StatusForbidden {
		t.Errorf("an answer has status %d by his name", status)
	}
	if metrics := s.get("/metrics"); !strings.Contains(metrics, "\nvllm:prompt_tokens_total{model_name=\"demo\"} 0\n") {
		t.Error("the model was asked")
	}
	b.mu.Lock()
	b.asked, b.faults = b.asked[:1], nil // they were the test's own
	b.mu.Unlock()
}
