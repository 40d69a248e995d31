package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"
)

// A keyed transport adds the key to requests.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// ollama is Ollama's client of the server.
func (s *server) ollama() *api.Client {
	s.t.Helper()
	base, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	return api.NewClient(base, &http.Client{Transport: keyed{key}})
}

// likeliest are the options of an answer of the likeliest tokens.
func likeliest(tokens int) map[string]any {
	return map[string]any{"temperature": 0, "num_predict": tokens}
}

// talk is a chat of one question.
func talk(question string, tokens int) *api.ChatRequest {
	return &api.ChatRequest{Model: modelName, Messages: []api.Message{{Role: "user", Content: question}}, Options: likeliest(tokens)}
}

// A talked answer is what a chat's lines say together.
type talked struct {
	api.ChatResponse
	lines int
}

func (s *server) talk(r *api.ChatRequest) (all talked, err error) {
	err = s.ollama().Chat(s.t.Context(), r, func(a api.ChatResponse) error {
		if all.Done {
			return errors.New("a line after the last")
		}
		m := all.Message
		m.Role, m.Content, m.Thinking = a.Message.Role, m.Content+a.Message.Content, m.Thinking+a.Message.Thinking
		m.ToolCalls = append(m.ToolCalls, a.Message.ToolCalls...)
		logprobs := append(all.Logprobs, a.Logprobs...)
		all.ChatResponse = a
		all.Message, all.Logprobs = m, logprobs
		all.lines++
		return nil
	})
	if err == nil && !all.Done {
		err = errors.New("the answer has no end")
	}
	return all, err
}

// unhappy checks an error of the server.
func unhappy(t *testing.T, err error, status int, says ...string) {
	t.Helper()
	var e api.StatusError
	if !errors.As(err, &e) || e.StatusCode != status {
		t.Errorf("got %v, want an error with status %d", err, status)
		return
	}
	for _, part := range says {
		if !strings.Contains(e.ErrorMessage, part) {
			t.Errorf("the message is %q, without %q", e.ErrorMessage, part)
		}
	}
}

func TestOllamaChat(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "30")
	r := talk(question, 30)
	streamed, err := s.talk(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Stream = new(false)
	whole, err := s.talk(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []talked{streamed, whole} {
		if a.Message.Content != want.Text || a.Message.Role != "assistant" || a.DoneReason != want.FinishReason || a.Model != modelName || a.CreatedAt.IsZero() {
			t.Errorf("the answer is %+v, want %q", a, want.Text)
		}
		if m := a.Metrics; int64(m.PromptEvalCount) != want.Usage.Prompt || int64(m.EvalCount) != want.Usage.Answer || m.TotalDuration <= 0 || m.EvalDuration <= 0 || m.TotalDuration < m.EvalDuration {
			t.Errorf("counts %+v, want %+v", m, want.Usage)
		}
	}
	if streamed.lines < 3 || whole.lines != 1 {
		t.Errorf("%d lines of a stream, %d of a whole answer", streamed.lines, whole.lines)
	}
	r.Messages = append([]api.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hello!"}, {Role: "assistant", Content: "Hello."}}, r.Messages...)
	if a, err := s.talk(r); err != nil || a.PromptEvalCount <= whole.PromptEvalCount+10 || a.Message.Content == whole.Message.Content {
		t.Errorf("a conversation is answered by %+v (%v)", a, err)
	}
}

func TestOllamaGenerate(t *testing.T) {
	s := serve(t)
	want := run(t, question, "--max-tokens", "20")
	r := &api.GenerateRequest{Model: modelName + ":latest", Prompt: question, Options: likeliest(20)}
	generate := func() (text string, last api.GenerateResponse) {
		t.Helper()
		if err := s.ollama().Generate(t.Context(), r, func(a api.GenerateResponse) error {
			text += a.Response
			last = a
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return text, last
	}
	text, last := generate()
	if text != want.Text || !last.Done || last.Model != modelName+":latest" || len(last.Context) < last.PromptEvalCount {
		t.Errorf("%q and %+v, want %q", text, last, want.Text)
	}
	// By its context a conversation has the prompts that it has by its messages.
	r.Context, r.Prompt = last.Context, "And then?"
	next, end := generate()
	chat := talk(question, 20)
	chat.Messages = append(chat.Messages, api.Message{Role: "assistant", Content: text}, api.Message{Role: "user", Content: "And then?"})
	if a, err := s.talk(chat); err != nil || a.PromptEvalCount != end.PromptEvalCount || a.Message.Content != next {
		t.Errorf("behind a context %q of %d, by messages %q of %d (%v)", next, end.PromptEvalCount, a.Message.Content, a.PromptEvalCount, err)
	}
	raw := run(t, question, "--max-tokens", "20", "--raw")
	r.Context, r.Prompt, r.Raw, r.Stream = nil, question, true, new(false)
	if text, last := generate(); text != raw.Text || int64(last.PromptEvalCount) != raw.Usage.Prompt || last.Context != nil {
		t.Errorf("raw it is %q, %+v; want %+v", text, last, raw)
	}
	r.Prompt, r.Raw = "", false
	if _, last := generate(); !last.Done || last.DoneReason != "load" {
		t.Errorf("an empty prompt gives %+v", last)
	}
	r.KeepAlive = &api.Duration{}
	if _, last := generate(); last.DoneReason != "unload" {
		t.Errorf("an empty prompt and no keep_alive give %+v", last)
	}
}

// The model calls a tool, is told what came of it, and says so.
func TestOllamaTools(t *testing.T) {
	s := serveModel(t, demo)
	var tools api.Tools
	if err := json.Unmarshal([]byte(`[{"type": "function", "function": {"name": "get_weather", "description": "Get the weather of a city", "parameters":
		{"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]}}}]`), &tools); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []*bool{nil, new(false)} {
		r := talk("what is the weather in Oslo?", 60)
		r.Tools, r.Stream = tools, stream
		calls := 0
		for {
			a, err := s.talk(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Message.ToolCalls) == 0 {
				if calls != 1 || !strings.Contains(a.Message.Content, "7") || !strings.Contains(a.Message.Content, "rainy") {
					t.Errorf("after %d calls the answer is %q", calls, a.Message.Content)
				}
				break
			}
			if calls += len(a.Message.ToolCalls); calls > 3 {
				t.Fatalf("it calls and calls: %+v", r.Messages)
			}
			r.Messages = append(r.Messages, a.Message)
			for _, c := range a.Message.ToolCalls {
				if city, _ := c.Function.Arguments.Get("city"); c.Function.Name != "get_weather" || city != "Oslo" || c.ID == "" {
					t.Errorf("the call is %+v", c)
				}
				r.Messages = append(r.Messages, api.Message{Role: "tool", ToolName: c.Function.Name, ToolCallID: c.ID, Content: `{"temperature": 7, "condition": "rainy"}`})
			}
		}
	}
}

func TestOllamaFormat(t *testing.T) {
	s := serveModel(t, demo)
	r := talk("A cat called Tom, 3 years old, as JSON", 200)
	r.Format = json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}`)
	a, err := s.talk(r)
	if err != nil {
		t.Fatal(err)
	}
	var pet map[string]any
	if err := json.Unmarshal([]byte(a.Message.Content), &pet); err != nil || len(pet) != 2 || a.DoneReason != "stop" {
		t.Errorf("%q: %v", a.Message.Content, err)
	}
	r.Format = json.RawMessage(`"json"`)
	if a, err := s.talk(r); err != nil || a.DoneReason == "stop" && json.Unmarshal([]byte(a.Message.Content), &pet) != nil {
		t.Errorf("%q: %v", a.Message.Content, err)
	}
	r.Format = json.RawMessage(`{"type": "pet"}`)
	_, err = s.talk(r)
	unhappy(t, err, 400, "format")
}

func TestOllamaThinking(t *testing.T) {
	s := serveModel(t, thinker(t))
	r := talk(question, 12)
	for _, think := range []*api.ThinkValue{nil, {Value: true}, {Value: "low"}} {
		r.Think = think
		if a, err := s.talk(r); err != nil || a.Message.Thinking == "" || a.Message.Content != "" {
			t.Errorf("think %+v: %+v (%v)", think, a.Message, err)
		}
	}
	r.Think = &api.ThinkValue{Value: false}
	a, err := s.talk(r)
	if err != nil || a.Message.Thinking != "" || a.Message.Content == "" {
		t.Errorf("%+v (%v)", a.Message, err)
	}
	r.Messages = append(r.Messages, api.Message{Role: "assistant", Thinking: "Hm.", Content: a.Message.Content}, api.Message{Role: "user", Content: "And?"})
	if b, err := s.talk(r); err != nil || b.PromptEvalCount <= a.PromptEvalCount {
		t.Errorf("%+v (%v)", b, err)
	}
	if show, err := s.ollama().Show(t.Context(), &api.ShowRequest{Model: modelName}); err != nil || fmt.Sprint(show.Capabilities) != "[completion thinking]" {
		t.Errorf("%+v (%v)", show, err)
	}
}

func TestOllamaLogprobs(t *testing.T) {
	s := serve(t)
	r := talk(question, 8)
	r.Logprobs, r.TopLogprobs = true, 3
	a, err := s.talk(r)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, l := range a.Logprobs {
		for _, b := range l.Bytes {
			text = append(text, byte(b))
		}
		if len(l.TopLogprobs) != 3 || l.TopLogprobs[0].Token != l.Token || !(l.Logprob < 0) {
			t.Errorf("%+v", l)
		}
	}
	if len(a.Logprobs) != 8 || string(text) != a.Message.Content {
		t.Errorf("%d tokens that say %q, want %q", len(a.Logprobs), text, a.Message.Content)
	}
}

func TestOllamaEmbed(t *testing.T) {
	s := serve(t)
	c := s.ollama()
	a, err := c.Embed(t.Context(), &api.EmbedRequest{Model: modelName, Input: []string{"one text", "another"}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := c.Embed(t.Context(), &api.EmbedRequest{Model: modelName, Input: "another", Truncate: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Embeddings) != 2 || a.PromptEvalCount == 0 || a.TotalDuration <= 0 || !slices.Equal(a.Embeddings[1], one.Embeddings[0]) || slices.Equal(a.Embeddings[0], a.Embeddings[1]) {
		t.Errorf("%+v, and alone %+v", a, one)
	}
	old, err := c.Embeddings(t.Context(), &api.EmbeddingRequest{Model: modelName, Prompt: "another"})
	if err != nil || len(old.Embedding) != len(one.Embeddings[0]) {
		t.Fatalf("%+v (%v)", old, err)
	}
	length := 0.0
	for _, f := range old.Embedding {
		length += f * f
	}
	for i, f := range old.Embedding {
		if math.Abs(f/math.Sqrt(length)-float64(one.Embeddings[0][i])) > 1e-5 {
			t.Fatalf("element %d is %v of a vector of length %v, and %v of one of unit length", i, f, math.Sqrt(length), one.Embeddings[0][i])
		}
	}
	short, err := c.Embed(t.Context(), &api.EmbedRequest{Model: modelName, Input: "another", Dimensions: 8})
	if err != nil || len(short.Embeddings[0]) != 8 {
		t.Errorf("%+v (%v)", short, err)
	}
	_, err = c.Embed(t.Context(), &api.EmbedRequest{Model: modelName, Input: strings.Repeat("long ", 5000)})
	unhappy(t, err, 400, "input", "1024")
	cut, err := c.Embed(t.Context(), &api.EmbedRequest{Model: modelName, Input: strings.Repeat("long ", 5000), Truncate: new(true)})
	if err != nil || cut.PromptEvalCount != 1024 {
		t.Errorf("%+v (%v)", cut, err)
	}
}

func TestOllamaModels(t *testing.T) {
	s := serve(t, "--served-model-name", "second")
	c := s.ollama()
	if err := c.Heartbeat(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := c.Version(t.Context()); err != nil || v == "" {
		t.Errorf("%q (%v)", v, err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list.Models) != 2 || list.Models[0].Name != modelName+":latest" || list.Models[1].Name != "second:latest" {
		t.Fatalf("%+v (%v)", list, err)
	}
	if m := list.Models[0]; m.Size == 0 || m.Digest == "" || m.ModifiedAt.IsZero() || m.Details.Family != "llama" || m.Details.QuantizationLevel != "Q8_0" || m.Details.ParameterSize != "147.90K" {
		t.Errorf("%+v", m)
	}
	running, err := c.ListRunning(t.Context())
	if err != nil || len(running.Models) != 2 || running.Models[0].ContextLength != 1024 || running.Models[0].ExpiresAt.IsZero() {
		t.Errorf("%+v (%v)", running, err)
	}
	show, err := c.Show(t.Context(), &api.ShowRequest{Model: list.Models[0].Name})
	if err != nil || show.ModelInfo["llama.context_length"] != 1024.0 || show.Template == "" || !strings.Contains(show.Parameters, "num_ctx") || show.Modelfile == "" || fmt.Sprint(show.Capabilities) != "[completion]" {
		t.Errorf("%+v (%v)", show, err)
	}
	if long, err := c.Show(t.Context(), &api.ShowRequest{Model: "second", Verbose: true}); err != nil || len(long.Tensors) != 21 || long.ModelInfo["tokenizer.ggml.tokens"] == nil {
		t.Errorf("%v", err)
	}
}

func TestOllamaErrors(t *testing.T) {
	s := serve(t)
	fails := func(status int, change func(*api.ChatRequest), says ...string) {
		t.Helper()
		r := talk(question, 5)
		change(r)
		_, err := s.talk(r)
		unhappy(t, err, status, says...)
	}
	fails(404, func(r *api.ChatRequest) { r.Model = "other" }, `model "other" not found`)
	fails(400, func(r *api.ChatRequest) { r.Options["num_ctx"] = 4096 }, "options.num_ctx is 4096", "1024")
	fails(400, func(r *api.ChatRequest) { r.Options["mirostat"] = 2 }, "options.mirostat")
	fails(400, func(r *api.ChatRequest) { r.Options["heat"] = 2 }, "options.heat")
	fails(400, func(r *api.ChatRequest) { r.Messages[0].Content = strings.Repeat("long ", 5000) }, "messages", "1024")
	fails(400, func(r *api.ChatRequest) { r.Messages[0].Images = []api.ImageData{{1}} }, "messages[0].images")
	fails(400, func(r *api.ChatRequest) {
		r.Tools = api.Tools{{Type: "function", Function: api.ToolFunction{Name: "f"}}}
	}, "tools", "template")
	fails(400, func(r *api.ChatRequest) { r.Think = &api.ThinkValue{Value: true} }, "think")
	fails(400, func(r *api.ChatRequest) { r.Shift = new(true) }, "shift")

	base, _ := url.Parse(s.url)
	var e api.AuthorizationError
	if _, err := api.NewClient(base, &http.Client{Transport: keyed{"wrong"}}).List(t.Context()); !errors.As(err, &e) || e.StatusCode != 401 {
		t.Errorf("a wrong key gives %v", err)
	}
}

// A client that leaves its stream frees its place.
func TestOllamaCancel(t *testing.T) {
	s := serve(t, "--parallel", "1")
	want := run(t, question, "--max-tokens", "5")
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lines := 0
		_ = s.ollama().Chat(ctx, talk(question+" Again.", 900), func(api.ChatResponse) error {
			if lines++; lines == 3 {
				cancel()
			}
			return nil
		})
		// The client says nothing, or calls a piece of a line an error.
		if lines < 3 {
			t.Errorf("%d lines", lines)
		}
	}
	for s.metric("vllm:num_requests_running") > 0 { // until the test's own time is over
		if t.Context().Err() != nil {
			t.Fatal("answers that nobody reads go on")
		}
	}
	if a, err := s.talk(talk(question, 5)); err != nil || a.Message.Content != want.Text {
		t.Errorf("%+v (%v), want %q", a, err, want.Text)
	}
}
