package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a server whose completions are written by script.
func serve(t testing.TB, script func(w http.ResponseWriter, r *http.Request)) string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"which key?"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"a"},{"id":"b"}]}`)
	})
	mux.HandleFunc("POST /v1/completions", script)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestCompletionsOverHTTP(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// A comment, a field of another name, CRLF, and a long line.
		_, _ = io.WriteString(w, ": hello\r\nevent: x\r\ndata:{\"choices\":[{\"text\":\"a\"}]}\r\n\r\n")
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"text\":%q}]}\n\n", strings.Repeat("b", 1<<17))
		_, _ = io.WriteString(w, `data: {"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":2}}`+"\n\ndata: [DONE]\n\n")
	})
	o := usual()
	o.URL, o.Endpoint, o.Key, o.Model = url+"/v1/", Completions, "sesame", "a"
	g, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Run(t.Context())
	if err != nil || r.Completed != 6 || r.AnswerTokens != 12 || r.Chunks != 12 || r.PromptTokens != 12 {
		t.Errorf("%v, %+v, errors %v", err, r, r.Errors)
	}
	if p := g.Progress(); p.Sent != 6 || p.Done != 6 || p.Failed != 0 || p.Chunks != 12 || p.Elapsed <= 0 {
		t.Errorf("progress %+v", p)
	}
}

func TestModelIsNotClear(t *testing.T) {
	url := serve(t, http.NotFound)
	o := usual()
	o.URL, o.Key = url, "sesame"
	if _, err := New(t.Context(), o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "name one of a, b") {
		t.Errorf("two models: %v", err)
	}
	o.Key = "wrong"
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "status 401: which key?") {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	s := httptest.NewServer(nil)
	url := s.URL
	s.Close()
	c, err := NewClient(url, "", newTransport())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stream(t.Context(), Chat, []byte("{}"), &answer{meter: new(atomic.Int64)}); kind(err) != "connection refused" {
		t.Errorf("%v is of the kind %q", err, kind(err))
	}
}

// Whatever a server sends, the client returns an error or a complete answer.
func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"error\":\"no\"}\n\n")
	f.Add("data: {\"error\":{\"message\":[]},\"usage\":null}\r\n\r\ndata:[DONE]")
	f.Add(":\n\nevent: x\ndata: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := &Client{base: "http://stub", http: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return response(200, text), nil })}}
		a := &answer{meter: new(atomic.Int64)}
		err := c.stream(context.Background(), Completions, nil, a)
		if done := strings.Contains(text, "[DONE]"); err == nil && (!done || a.ended.IsZero()) {
			t.Errorf("%q is taken for a complete answer", text)
		}
		if err != nil && kind(err) == "" {
			t.Errorf("%v has no kind", err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Measures the processor time per token of the client and of a server that only sends.
func BenchmarkTokens(b *testing.B) {
	const tokens = 1000
	chunk := []byte(`data: {"id":"cmpl-0123456789abcdef","object":"text_completion","created":1700000000,"model":"a","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}` + "\n\n")
	url := serve(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c := http.NewResponseController(w)
		for range tokens {
			_, _ = w.Write(chunk)
			_ = c.Flush()
		}
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", tokens)
	})
	o := usual()
	o.URL, o.Endpoint, o.Model, o.Concurrency = url, Completions, "a", 16
	o.Requests, o.Timeout = max(1, b.N/tokens), time.Minute
	g, err := New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	r, err := g.Run(b.Context())
	if err != nil || r.Failed > 0 {
		b.Fatal(err, r.Errors)
	}
	b.ReportMetric(r.AnswerRate, "tok/s")
}
