package ollama_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// chatBody returns a request of one message, with more members.
func chatBody(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"small","messages":[{"role":"user","content":"hello"}]` + more + `}`
}

// said returns the model's answer to r, without the server.
func said(t *testing.T, m *realizar.Model, r *realizar.ChatRequest) (text string, end *realizar.Finish) {
	t.Helper()
	if r.Messages == nil {
		r.Messages = []chat.Message{{Role: "user", Content: "hello"}}
	}
	for e, err := range m.Chat(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		if text += e.Text; e.Finish != nil {
			end = e.Finish
		}
	}
	return text, end
}

// TestChatContinues checks that an answer continues the last message if that is the assistant's
// text.
func TestChatContinues(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(qwenTemplate))
	messages := []chat.Message{{Role: "user", Content: "hello"}, {Role: "assistant", Content: "the world"}}
	want, end := said(t, s.model, &realizar.ChatRequest{Messages: messages, Continue: true, Generation: realizar.Generation{MaxTokens: new(12)}})
	const begun = `{"model":"small","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"the world"}],"stream":false`
	a := s.post("/api/chat", begun+`,"options":{"temperature":0,"num_predict":12}}`).whole(t)
	if a.text() != want || a.Prompt != end.Usage.PromptTokens {
		t.Errorf("%+v, want %q of %+v", a, want, end)
	}
	if r := s.post("/api/chat", begun+`,"think":true}`); r.status != 400 || !strings.Contains(r.body, "reasoning") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestChat(t *testing.T) {
	s := serve(t, server.Config{})
	want, end := said(t, s.model, &realizar.ChatRequest{Generation: realizar.Generation{MaxTokens: new(12)}})
	more := `"options":{"temperature":0,"num_predict":12}`
	a := s.post("/api/chat", chatBody(more+`,"stream":false`)).whole(t)
	if a.Model != name || a.Message == nil || a.Message.Role != "assistant" || a.text() != want || a.DoneReason != "length" {
		t.Errorf("%+v, want %q", a, want)
	}
	if a.Prompt != end.Usage.PromptTokens || a.Count != 12 || a.Total <= 0 || a.PromptEval <= 0 || a.Eval <= 0 || a.Load != 0 {
		t.Errorf("%+v, want %+v", a, end)
	}
	if _, err := time.Parse(time.RFC3339Nano, a.CreatedAt); err != nil {
		t.Error(err)
	}
	all, text := s.post("/api/chat", chatBody(more)).lines(t)
	if last := all[len(all)-1]; text != want || len(all) < 4 || last.DoneReason != "length" || last.Count != 12 || last.Prompt != a.Prompt || last.Total <= 0 {
		t.Errorf("%q in %d lines, want %q; the last is %+v", text, len(all), want, last)
	}
	for _, l := range all {
		if l.Model != name || l.Message == nil || l.Message.Role != "assistant" || l.LogProbs != nil || !l.Done && l.DoneReason != "" {
			t.Errorf("a line %+v", l)
		}
	}
	if again := s.post("/api/chat", strings.Replace(chatBody(more+`,"stream":false`), `"small"`, `"small:latest"`, 1)).whole(t); again.text() != want || again.Model != "small:latest" {
		t.Errorf("%+v", again)
	}
	// Ollama's defaults: temperature 0.8, top_k 40, top_p 0.9.
	g := realizar.Generation{Sampling: realizar.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, Seed: 7}, MaxTokens: new(12)}
	want, _ = said(t, s.model, &realizar.ChatRequest{Generation: g})
	if got := s.post("/api/chat", chatBody(`"stream":false,"options":{"seed":7,"num_predict":12}`)).whole(t).text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOptions checks that every option reaches the model.
func TestOptions(t *testing.T) {
	s := serve(t, server.Config{})
	m := s.model.Context()
	for option, set := range map[string]func(*realizar.Generation){
		`"temperature":1.5,"seed":3`: func(g *realizar.Generation) { g.Temperature, g.Seed = 1.5, 3 },
		`"top_k":0,"top_p":1,"temperature":1,"seed":-7`: func(g *realizar.Generation) {
			g.TopK, g.TopP, g.Temperature, g.Seed = 0, 1, 1, ^uint64(0)-6
		},
		`"top_k":-1,"top_p":0,"temperature":1,"seed":3`: func(g *realizar.Generation) {
			g.TopK, g.TopP, g.Temperature, g.Seed = 0, 1e-45, 1, 3
		},
		`"min_p":0.2,"typical_p":0.5,"seed":3`: func(g *realizar.Generation) { g.MinP, g.Typical, g.Seed = 0.2, 0.5, 3 },
		`"repeat_penalty":1.7,"seed":3`:        func(g *realizar.Generation) { g.RepetitionPenalty, g.Seed = 1.7, 3 },
		`"presence_penalty":1.5,"frequency_penalty":-0.5,"seed":3,"repeat_last_n":-1`: func(g *realizar.Generation) {
			g.PresencePenalty, g.FrequencyPenalty, g.Seed = 1.5, -0.5, 3
		},
		`"presence_penalty":1.5,"seed":3,"repeat_last_n":0,"penalize_newline":false`: func(g *realizar.Generation) { g.Seed = 3 },
		`"repeat_last_n":33,"num_keep":5,"mirostat":0,"mirostat_tau":5,"mirostat_eta":0.1,"tfs_z":1.0,"penalize_newline":false,"numa":false,"num_batch":2,
			"num_gpu":1,"main_gpu":0,"low_vram":true,"vocab_only":false,"use_mmap":null,"use_mlock":false,"num_thread":8,"seed":3,"num_ctx":` + fmt.Sprint(m): func(g *realizar.Generation) { g.Seed = 3 },
		`"stop":"e","seed":3`:           func(g *realizar.Generation) { g.Stop, g.Seed = []string{"e"}, 3 },
		`"stop":["a","never"],"seed":3`: func(g *realizar.Generation) { g.Stop, g.Seed = []string{"a", "never"}, 3 },
	} {
		g := realizar.Generation{Sampling: realizar.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9}, MaxTokens: new(14)}
		set(&g)
		want, end := said(t, s.model, &realizar.ChatRequest{Generation: g})
		a := s.post("/api/chat", chatBody(`"stream":false,"options":{"num_predict":14,`+option+`}`)).whole(t)
		if reason := string(end.Reason); a.text() != want || a.DoneReason != reason {
			t.Errorf("%s: %q, %s; want %q, %s", option, a.text(), a.DoneReason, want, reason)
		}
	}
	for _, n := range []string{"-1", "-2"} { // no limit but the context and an end token
		a := s.post("/api/chat", chatBody(`"stream":false,"options":{"temperature":0,"num_predict":`+n+`}`)).whole(t)
		if a.DoneReason == "length" && a.Prompt+a.Count < m-1 || a.Count < 20 {
			t.Errorf("num_predict %s: %+v", n, a)
		}
	}
	// Without a seed, or with seed -1, answers differ.
	seen := map[string]bool{}
	for range 4 {
		seen[s.post("/api/chat", chatBody(`"stream":false,"options":{"num_predict":14,"seed":-1,"temperature":2}`)).whole(t).text()] = true
	}
	if len(seen) < 2 {
		t.Errorf("four answers are %v", seen)
	}
}

// TestRecommended checks that the sampling that a model's files recommend takes the place of
// Ollama's defaults.
func TestRecommended(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Metadata("general.sampling.temp", float32(0.3)), modeltest.Metadata("general.sampling.top_k", int32(5)))
	d, ok := s.model.DefaultSampling()
	if !ok || d.Temperature != 0.3 {
		t.Fatalf("%+v, %v", d, ok)
	}
	d.Seed = 3
	want, _ := said(t, s.model, &realizar.ChatRequest{Generation: realizar.Generation{Sampling: d, MaxTokens: new(14)}})
	if got := s.post("/api/chat", chatBody(`"stream":false,"options":{"num_predict":14,"seed":3}`)).whole(t).text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLogProbs(t *testing.T) {
	s := serve(t, server.Config{})
	more := `"logprobs":true,"top_logprobs":3,"options":{"temperature":0,"num_predict":6}`
	a := s.post("/api/chat", chatBody(more+`,"stream":false`)).whole(t)
	if len(a.LogProbs) != 6 {
		t.Fatalf("%+v", a.LogProbs)
	}
	var bytes []byte
	for _, l := range a.LogProbs {
		for _, b := range l.Bytes {
			bytes = append(bytes, byte(b))
		}
		if len(l.Top) != 3 || l.Top[0].Token != l.Token || l.Top[0].LogProb != l.LogProb || !(l.LogProb < 0) || l.Top[1].LogProb > l.LogProb {
			t.Errorf("%+v", l)
		}
	}
	if got := string([]rune(string(bytes))); got != a.text() { // in the text, invalid bytes are U+FFFD
		t.Errorf("%q, want %q", bytes, a.text())
	}
	all, _ := s.post("/api/generate", `{"model":"small","prompt":"hello",`+more+`}`).lines(t)
	n := 0
	for _, l := range all {
		for _, p := range l.LogProbs {
			if p.LogProb != a.LogProbs[n].LogProb || len(p.Top) != 3 {
				t.Errorf("token %d: %+v, want %+v", n, p, a.LogProbs[n])
			}
			n++
		}
	}
	if n != 6 {
		t.Errorf("%d tokens in the stream", n)
	}
	if a := s.post("/api/chat", chatBody(`"logprobs":true,"stream":false,"options":{"temperature":0,"num_predict":2}`)).whole(t); len(a.LogProbs) != 2 || a.LogProbs[0].Top != nil {
		t.Errorf("%+v", a.LogProbs)
	}
}

func TestFormat(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Context(2048))
	const schema = `{"type":"object","properties":{"age":{"type":"integer","minimum":3,"maximum":5},"ok":{"type":"boolean"}},"required":["age","ok"],"additionalProperties":false}`
	for _, path := range []string{"/api/chat", "/api/generate"} {
		ask := `{"model":"small","messages":[{"role":"user","content":"hi"}],`
		if path == "/api/generate" {
			ask = `{"model":"small","prompt":"hi",`
		}
		for format, want := range map[string][]string{schema: {"age", "ok"}, `{"enum":["x"]}`: nil} {
			text := s.post(path, ask+`"stream":false,"options":{"seed":1},"format":`+format+`}`).whole(t).text()
			_, streamed := s.post(path, ask+`"options":{"seed":1},"format":`+format+`}`).lines(t)
			for _, text := range []string{text, streamed} {
				if want == nil && text != `"x"` {
					t.Errorf("%s: %q", format, text)
				}
				for _, w := range want {
					if !strings.Contains(text, w) {
						t.Errorf("%s: %q", format, text)
					}
				}
			}
		}
		if text := s.post(path, ask+`"stream":false,"format":"json","options":{"seed":1,"num_predict":20}}`).whole(t).text(); !strings.HasPrefix(strings.TrimSpace(text), "{") {
			t.Errorf("%q", text)
		}
		s.post(path, ask+`"stream":false,"format":{"type":"unheard"}}`).fails(t, 400, "format")
	}
}

// TestLoad checks that a request without messages reports the model as loaded, or with keep_alive 0
// as unloaded.
func TestLoad(t *testing.T) {
	s := serve(t, server.Config{})
	for body, want := range map[string]string{
		`{"model":"small"}`: "load",
		`{"model":"small","keep_alive":"5m","stream":true}`:             "load",
		`{"model":"small","keep_alive":-1}`:                             "load",
		`{"model":"small","keep_alive":0}`:                              "unload",
		`{"model":"small","keep_alive":"0"}`:                            "unload",
		`{"model":"small","keep_alive":"0s","messages":[],"prompt":""}`: "unload",
	} {
		for _, path := range []string{"/api/chat", "/api/generate"} {
			own := body
			if path == "/api/chat" {
				own = strings.Replace(own, `,"prompt":""`, "", 1)
			} else {
				own = strings.Replace(own, `,"messages":[]`, "", 1)
			}
			a := s.post(path, own).whole(t)
			if a.DoneReason != want || a.text() != "" || a.Count != 0 || (path == "/api/chat") != (a.Message != nil) {
				t.Errorf("%s: %+v", own, a)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	s := serve(t, server.Config{})
	long := strings.Repeat("long ", 3000)
	for _, c := range []struct {
		path, body string
		status     int
		says       []string
	}{
		{"/api/chat", `{"model":"other","messages":[]}`, 404, []string{`model "other" not found`, "small"}},
		{"/api/chat", `{`, 400, []string{"the body"}},
		{"/api/chat", chatBody(`"temperature":1`), 400, []string{`unknown field "temperature"`}},
		{"/api/chat", chatBody(`"options":{"temprature":1}`), 400, []string{`unknown field "options.temprature"`}},
		{"/api/chat", chatBody(`"options":{"num_ctx":100000}`), 400, []string{"num_ctx is 100000", fmt.Sprint(s.model.Context())}},
		{"/api/chat", chatBody(`"options":{"num_predict":0}`), 400, []string{"options.num_predict is 0"}},
		{"/api/chat", chatBody(`"options":{"mirostat":1}`), 400, []string{"mirostat 1 is not supported"}},
		{"/api/chat", chatBody(`"options":{"repeat_penalty":1.1,"repeat_last_n":64}`), 400, []string{"repeat_last_n 64 is not supported"}},
		{"/api/chat", chatBody(`"options":{"repeat_penalty":1.1,"penalize_newline":false}`), 400, []string{"penalize_newline false"}},
		{"/api/chat", chatBody(`"options":{"rope_frequency_base":1}`), 400, []string{"rope_frequency_base is not supported"}},
		{"/api/chat", chatBody(`"options":{"stop":[""]}`), 400, []string{"stop is empty"}},
		{"/api/chat", chatBody(`"options":5`), 400, []string{"options"}},
		{"/api/chat", chatBody(`"think":"much"`), 400, []string{`think is "much"`}},
		{"/api/chat", chatBody(`"think":true`), 400, []string{"think: ", "has no reasoning"}},
		{"/api/chat", chatBody(`"shift":true`), 400, []string{"shift true is not supported"}},
		{"/api/chat", chatBody(`"top_logprobs":2`), 400, []string{"top_logprobs is for logprobs"}},
		{"/api/chat", chatBody(`"keep_alive":"soon"`), 400, []string{`keep_alive is "soon"`}},
		{"/api/chat", chatBody(`"format":"xml"`), 400, []string{`format is "xml"`}},
		{"/api/chat", chatBody(`"tools":[{"type":"function","function":{"name":"f"}}]`), 400, []string{"tools"}},
		{"/api/chat", `{"model":"small","messages":[{"role":"user","content":"a","images":["aGk="]}]}`, 400, []string{"messages[0].images", "reads text alone"}},
		{"/api/chat", `{"model":"small","messages":[{"role":"friend","content":"a"}]}`, 400, []string{`messages[0].role is "friend"`}},
		{"/api/chat", `{"model":"small","messages":[{"role":"user","content":"` + long + `"}]}`, 400, []string{"messages: ", "exceeds", fmt.Sprint(s.model.Context())}},
		{"/api/chat", `{"model":"small","truncate":true,"messages":[{"role":"user","content":"` + long + `"}]}`, 400, []string{"exceeds", "truncate is not supported"}},
		{"/api/generate", `{"model":"small","prompt":"` + long + `"}`, 400, []string{"prompt", "exceeds"}},
		{"/api/generate", `{"model":"small","prompt":"a","suffix":"b"}`, 400, []string{"suffix is not supported"}},
		{"/api/generate", `{"model":"small","prompt":"a","template":"b"}`, 400, []string{`template "b" is not supported`, "raw"}},
		{"/api/generate", `{"model":"small","prompt":"a","images":["aGk="]}`, 400, []string{"images"}},
		{"/api/generate", `{"model":"small","prompt":"a","raw":true,"system":"b"}`, 400, []string{"system"}},
		{"/api/generate", `{"model":"small","prompt":"a","raw":true,"context":[1]}`, 400, []string{"context"}},
		{"/api/generate", `{"model":"small","prompt":"a","system":"b","context":[1]}`, 400, []string{"system", "context"}},
		{"/api/generate", `{"model":"small","prompt":"a","context":[1,99999999]}`, 400, []string{"context has 99999999 at index 1"}},
		{"/api/generate", `{"model":"small","prompt":"a","raw":true,"think":true}`, 400, []string{"think"}},
		{"/api/embed", `{"model":"small"}`, 400, []string{"input is missing"}},
		{"/api/embed", `{"model":"small","input":5}`, 400, []string{"input is 5"}},
		{"/api/embed", `{"model":"small","input":"` + long + `"}`, 400, []string{"input", "exceeds"}},
		{"/api/embed", `{"model":"small","input":"a","dimensions":100000}`, 400, []string{"dimensions is 100000"}},
		{"/api/embeddings", `{"model":"other","prompt":"a"}`, 404, []string{"not found"}},
		{"/api/show", `{"model":"other"}`, 404, []string{"not found"}},
		{"/api/show", `{}`, 400, []string{"model is missing"}},
		{"/api/pull", `{"model":"llama3.2"}`, 403, []string{"--manage-models"}},
		{"/api/push", `{"model":"llama3.2"}`, 403, []string{"--manage-models"}},
		{"/api/create", `{"model":"llama3.2"}`, 403, []string{"--manage-models"}},
		{"/api/copy", `{"source":"a"}`, 403, []string{"--manage-models"}},
		{"/api/blobs/sha256:00", `x`, 403, []string{"--manage-models"}},
		{"/api/nothing", `{}`, 404, []string{"nothing at this address"}},
		{"/api/tags", `{}`, 405, nil},
	} {
		s.post(c.path, c.body).fails(t, c.status, c.says...)
	}
	s.send("DELETE", "/api/delete", `{"model":"small"}`).fails(t, 403, "--manage-models")
	if r := s.send("HEAD", "/api/blobs/sha256:00", ""); r.status != 403 {
		t.Errorf("%d", r.status)
	}
	if r := s.post("/api/pull", `{"name":"small:latest"}`); r.status != 200 || r.body != `{"status":"success"}`+"\n" {
		t.Errorf("%d %q", r.status, r.body)
	}
	if r := s.post("/api/pull", `{"model":"small","stream":false,"insecure":true}`); r.status != 200 || r.body != `{"status":"success"}` {
		t.Errorf("%d %q", r.status, r.body)
	}
}

func TestNames(t *testing.T) {
	s := serveNamed(t, []string{"org/qwen:0.6b", "other:latest"}, time.Time{}, server.Config{}, modeltest.Llama(t))
	for name, status := range map[string]int{
		"org/qwen:0.6b": 200, "other": 200, "other:latest": 200, "org/qwen": 404, "qwen:0.6b": 404, "other:new": 404, "org/qwen:0.6b:latest": 404,
	} {
		if r := s.post("/api/chat", `{"model":"`+name+`"}`); r.status != status {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	r := s.send("GET", "/api/tags", "")
	for _, name := range []string{"org/qwen:0.6b", "other:latest"} {
		if !slices.Contains(strings.Split(r.body, `"`), name) {
			t.Errorf("%s has no %s", r.body, name)
		}
	}
}

// TestTimings checks that an answer has timings if the request asks for them.
func TestTimings(t *testing.T) {
	s := serve(t, server.Config{})
	for _, stream := range []string{"true", "false"} {
		r, err := http.NewRequest(http.MethodPost, s.URL+"/api/chat", strings.NewReader(chatBody(`"options":{"temperature":0,"num_predict":4},"stream":`+stream)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Trace-Level", "step")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		var last struct {
			Timings struct {
				Choices []struct {
					Tokens []float64 `json:"token_ms"`
				}
			}
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(last.Timings.Choices) != 1 || len(last.Timings.Choices[0].Tokens) != 4 {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// TestLongAnswer checks an answer that is written in pieces while its JSON is made.
func TestLongAnswer(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Context(2048))
	a := s.post("/api/generate", `{"model":"small","prompt":"hello","stream":false,"logprobs":true,"top_logprobs":20,"options":{"temperature":0,"num_predict":400}}`).whole(t)
	if len(a.LogProbs) < 100 || a.Count < len(a.LogProbs) || len(a.Context) == 0 {
		t.Errorf("%d tokens of %d, %s", len(a.LogProbs), a.Count, a.DoneReason)
	}
}
