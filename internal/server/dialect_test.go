package server_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
	"github.com/realizar/realizar/internal/server/openai"
)

// A plainDialect is a complete dialect that shares nothing with others: it has its own fields, key,
// errors, and streams of one JSON value per line.
type plainDialect struct {
	breaks bool // streams fail after their first part
}

func (d plainDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "POST /plain", Handle: d.plain}}
}

func (plainDialect) Key(r *http.Request) (string, error) {
	if key := r.Header.Get("X-Key"); key != "" {
		return key, nil
	}
	return "", &server.Error{Status: http.StatusUnauthorized, Code: "no_key", Message: "send X-Key"}
}

func (plainDialect) Error(h http.Header, e *server.Error) []byte {
	h.Set("X-Code", e.Code)
	return append(jsontext.AppendString([]byte(`{"wrong":`), e.Param+": "+e.Message), '}')
}

// A plainRequest is the body of POST /plain.
type plainRequest struct {
	realizar.Request
	stream bool
}

var plainFields = fields.List[plainRequest]{
	fields.Text("text", "", func(r *plainRequest) *string { return &r.Prompt }),
	fields.Optional("most", "until the context is full", 1, math.MaxInt32, func(r *plainRequest) **int { return &r.MaxTokens }),
	fields.Whole("answers", "1", 1, 8, func(r *plainRequest) *int { return &r.Choices }),
	fields.Flag("stream", "false", func(r *plainRequest) *bool { return &r.stream }),
}

func (d plainDialect) plain(x *server.Exchange) error {
	r, err := server.ReadFor(x, plainFields, func() *plainRequest { return &plainRequest{Request: realizar.Request{Generation: x.Defaults()}} })
	if err != nil {
		return err
	}
	if r.Prompt == "" {
		return fields.Missing("text")
	}
	w := &plainWriter{x: x, breaks: d.breaks}
	if r.stream {
		w.stream = x.Stream(server.Lines, func(e *server.Error) error { return w.line(string(d.Error(http.Header{}, e))) })
	}
	return x.Answer(&server.Request{Prompts: []realizar.Request{r.Request}, Seeded: true, Param: "text"}, w)
}

// A plainWriter writes the answers.
type plainWriter struct {
	x      *server.Exchange
	breaks bool
	prompt int
	stream *server.Stream
}

func (w *plainWriter) Begin(prompts [][]int32) error {
	w.prompt = len(prompts[0])
	return nil
}

func (w *plainWriter) Delta(d *server.Delta) error {
	if err := w.line(string(jsontext.AppendString(nil, d.Text))); err != nil || !w.breaks {
		return err
	}
	return errors.New("it breaks")
}

func (w *plainWriter) End(r *server.Result) error {
	if w.stream != nil {
		return w.line("null")
	}
	var texts, reasons []string
	for i := range r.Answers {
		texts, reasons = append(texts, string(r.Answers[i].Text)), append(reasons, string(r.Answers[i].Finish.Reason))
	}
	return w.x.JSON(map[string]any{"texts": texts, "ended": reasons, "prompt": w.prompt, "tokens": r.Usage.CompletionTokens})
}

func (w *plainWriter) line(text string) error {
	w.stream.Add([]byte(text + "\n"))
	return w.stream.Flush()
}

// TestDialect checks that the server uses only the interface of a dialect.
func TestDialect(t *testing.T) {
	speak := func(d plainDialect, c server.Config) *service {
		t.Helper()
		c.Dialects = []server.Dialect{openai.Dialect{}, d}
		return serve(t, c, realizar.Options{})
	}
	s := speak(plainDialect{}, server.Config{})
	g := realizar.Generation{Sampling: realizar.Sampling{Temperature: 1}}
	g.MaxTokens, g.Choices = new(9), 2
	texts := make([]string, 2)
	for e, err := range s.model.Generate(t.Context(), &realizar.Request{Prompt: "hello world", Generation: g}) {
		if err != nil {
			t.Fatal(err)
		}
		texts[e.Choice] += e.Text
	}
	r := s.post("/plain", `{"text":"hello world","most":9,"answers":2}`)
	var got struct {
		Texts, Ended   []string
		Prompt, Tokens int
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
		t.Fatalf("%d %s (%v)", r.status, r.body, err)
	}
	if diff := cmp.Diff(texts, got.Texts); diff != "" || len(got.Ended) != 2 || got.Ended[0] != "length" || got.Prompt == 0 || got.Tokens != 18 {
		t.Errorf("%+v (-want +got)\n%s", got, diff)
	}

	r = s.post("/plain", `{"text":"hello world","most":9,"stream":true}`)
	if r.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("the stream is %q", r.header.Get("Content-Type"))
	}
	lines := strings.Split(strings.TrimSpace(r.body), "\n")
	var all string
	for _, line := range lines[:len(lines)-1] {
		var text string
		if err := json.Unmarshal([]byte(line), &text); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all += text
	}
	if all != texts[0] || lines[len(lines)-1] != "null" {
		t.Errorf("the stream is %q, want %q and null", lines, texts[0])
	}

	for body, want := range map[string]struct{ code, says string }{
		`{"text":5}`:   {"invalid_value", `text: text is 5; want a string`},
		`{"most":1}`:   {"missing_required_parameter", `text: the field text is missing`},
		`{"prompt":1}`: {"unknown_parameter", `prompt: `},
		`{"stream":true,"text":"` + strings.Repeat("long ", 3000) + `"}`: {"context_length_exceeded", `text: the prompt exceeds`},
	} {
		r := s.post("/plain", body)
		var got struct{ Wrong string }
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 400 || r.header.Get("X-Code") != want.code || !strings.HasPrefix(got.Wrong, want.says) {
			t.Errorf("%.20s: %d %s %s, want %s", body, r.status, r.header.Get("X-Code"), r.body, want)
		}
	}
	if r := s.get("/plain"); r.status != 405 || !strings.HasPrefix(r.body, `{"wrong":`) || r.header.Get("Allow") != "POST" {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.get("/nothing").fails(t, 404, "", "not_found") // the first dialect's error

	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := server.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	s = speak(plainDialect{breaks: true}, server.Config{Keys: keys})
	if r := s.post("/plain", `{"text":"a"}`); r.status != 401 || r.header.Get("X-Code") != "no_key" || r.header.Get("WWW-Authenticate") != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	request, err := http.NewRequest(http.MethodPost, s.URL+"/plain", strings.NewReader(`{"text":"hello","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Key", "sesame")
	r = s.send(request)
	lines = strings.Split(strings.TrimSpace(r.body), "\n")
	if r.status != 200 || len(lines) != 2 || !strings.HasPrefix(lines[1], `{"wrong":": internal error`) {
		t.Errorf("a stream that breaks is %d %q", r.status, lines)
	}
}
