package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// measured is the timings of an answer.
type measured struct {
	Level    string
	Render   float64 `json:"render_ms"`
	Tokenize float64 `json:"tokenize_ms"`
	Choices  []struct {
		Index      int
		Queue      *float64  `json:"queue_ms"`
		Prefill    float64   `json:"prefill_ms"`
		Decode     float64   `json:"decode_ms"`
		Detokenize float64   `json:"detokenize_ms"`
		Tokens     []float64 `json:"token_ms"`
		Layers     *struct {
			Prefill []float64 `json:"prefill_ms"`
			Decode  []float64 `json:"decode_ms"`
		}
	}
}

// traced sends a request with a trace level. It returns the reply and the last object of the
// answer.
func (s *service) traced(level, path, body string) (reply, []byte) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if level != "" {
		r.Header.Set("X-Trace-Level", level)
	}
	got := s.send(r)
	lines := strings.Split(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(got.body), "data: [DONE]")), "\n")
	return got, []byte(strings.TrimPrefix(lines[len(lines)-1], "data: "))
}

func TestTimings(t *testing.T) {
	const layers = 2 // of the default test model
	s := serve(t, server.Config{}, realizar.Options{})
	for _, test := range []struct {
		path, body string
		choices    int
		renders    bool
	}{
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5`, 1, true},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, "n": 3`, 3, true},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, "stream": true`, 1, true},
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, "n": 2, "stream": true, "stream_options": {"include_usage": true}`, 2, true},
		{"/v1/completions", `"prompt": "hello", "max_tokens": 5`, 1, false},
		{"/v1/completions", `"prompt": ["hello", "world"], "n": 2, "max_tokens": 5`, 4, false},
		{"/v1/completions", `"prompt": ["hello", "world"], "max_tokens": 5, "stream": true`, 2, false},
		{"/v1/responses", `"input": "hello", "max_output_tokens": 5`, 1, true},
		{"/v1/responses", `"input": "hello", "max_output_tokens": 5, "stream": true`, 1, true},
	} {
		body := `{"model": "small", "ignore_eos": true, ` + test.body + `}`
		for _, level := range []string{"", "brick", "step", "layer"} {
			got, last := s.traced(level, test.path, body)
			var answer struct {
				Timings  *measured
				Response struct{ Timings *measured }
			}
			if err := json.Unmarshal(last, &answer); err != nil || got.status != 200 {
				t.Fatalf("%s at level %q: %d %s (%v)", test.body, level, got.status, got.body, err)
			}
			m := answer.Timings
			if m == nil {
				m = answer.Response.Timings
			}
			if level == "" {
				if m != nil || strings.Contains(got.body, "timings") {
					t.Errorf("%s: timings that nobody asked for: %s", test.body, got.body)
				}
				continue
			}
			if m == nil || m.Level != level || m.Tokenize <= 0 || (m.Render > 0) != test.renders || len(m.Choices) != test.choices {
				t.Fatalf("%s at level %s: %+v of %s", test.body, level, m, last)
			}
			if n := strings.Count(got.body, `"timings"`); n != 1 {
				t.Errorf("%s at level %s: timings %d times", test.body, level, n)
			}
			for i, c := range m.Choices {
				if c.Index != i || c.Queue == nil || c.Prefill <= 0 || c.Decode <= 0 || c.Detokenize <= 0 {
					t.Errorf("%s at level %s: choice %d: %+v", test.body, level, i, c)
				}
				if level == "brick" && c.Tokens != nil || level != "brick" && (len(c.Tokens) != 5 || !slices.IsSorted(c.Tokens) || c.Tokens[0] <= 0) {
					t.Errorf("%s at level %s: choice %d has tokens at %v", test.body, level, i, c.Tokens)
				}
				if (c.Layers != nil) != (level == "layer") {
					t.Errorf("%s at level %s: choice %d has layers %v", test.body, level, i, c.Layers)
				}
				if c.Layers == nil {
					continue
				}
				sum := 0.0
				for part, times := range [][]float64{c.Layers.Prefill, c.Layers.Decode} {
					for _, ms := range times {
						sum += ms
					}
					if until := c.Tokens[part*4]; len(times) != layers+1 || slices.Min(times) <= 0 || sum > until {
						t.Errorf("%s: choice %d, of %d layers: %+v, until %v", test.body, i, layers, c.Layers, c.Tokens)
					}
				}
			}
		}
	}
}

func TestTimingErrors(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for _, test := range []struct{ level, path, body, says string }{
		{"bricks", "/v1/completions", `{"model": "small", "prompt": "a"}`, "brick, step or layer"},
		{"layers", "/v1/responses", `{"model": "small", "input": "a"}`, "brick, step or layer"},
		{"layer", "/v1/embeddings", `{"model": "small", "input": "a"}`, "no timings"},
		{"brick", "/v1/embeddings", `{"model": "small", "input": "a"}`, "no timings"},
		{"brick", "/tokenize", `{"model": "small", "prompt": "a"}`, "no timings"},
	} {
		got, _ := s.traced(test.level, test.path, test.body)
		if e := got.fails(t, 400, "X-Trace-Level", "invalid_value"); !strings.Contains(e.Message, test.says) {
			t.Errorf("%s of %s: %q does not say %q", test.level, test.path, e.Message, test.says)
		}
	}
}
