package server_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/servertest"
)

// noted is what a request's span was told.
type noted struct {
	server.Answered
	notes map[string]string
}

// testSpans collects what spans are told.
type testSpans struct{ ended []noted }

func (s *testSpans) Begin(*http.Request) (string, func(*server.Answered)) {
	return "a trace", func(a *server.Answered) {
		n := noted{*a, map[string]string{}}
		for _, a := range a.Notes {
			n.notes[a.Key] = a.Value.String()
		}
		s.ended = append(s.ended, n)
	}
}

func TestTraces(t *testing.T) {
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ask := func(c server.Config, headers ...string) (header http.Header, line map[string]any) {
		var log bytes.Buffer
		c.Parallel, c.Logger, c.LogPrompts = 1, slog.New(slog.NewJSONHandler(&log, nil)), true
		c.Dialects = dialects.All
		s, err := server.New(servertest.One(t, m, "small"), c)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(`{"model": "small", "prompt": "hello", "max_tokens": 3, "temperature": 0}`))
		r.Header["Traceparent"] = headers
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %s (%v)", w.Code, w.Body, &log, err)
		}
		return w.Header(), line
	}
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if header, line := ask(server.Config{}, parent); header.Get("X-Trace-Id") != trace || line["trace_id"] != trace {
		t.Errorf("trace %q in the answer, %v in the log, want %s", header.Get("X-Trace-Id"), line["trace_id"], trace)
	}
	for _, headers := range [][]string{nil, {"00-1-2-3"}, {parent, parent}} {
		if header, line := ask(server.Config{}, headers...); header["X-Trace-Id"] != nil || line["trace_id"] != nil {
			t.Errorf("%q: trace %q in the answer, %v in the log", headers, header["X-Trace-Id"], line["trace_id"])
		}
	}
	var spans testSpans
	header, line := ask(server.Config{Spans: &spans})
	if header.Get("X-Trace-Id") != "a trace" || line["trace_id"] != "a trace" || len(spans.ended) != 1 {
		t.Fatalf("trace %q in the answer, %v in the log, spans %+v", header.Get("X-Trace-Id"), line["trace_id"], spans.ended)
	}
	n := spans.ended[0]
	if n.Route != "POST /v1/completions" || n.Operation != "text_completion" || n.Model != "small" || n.Status != 200 || n.notes["completion_tokens"] != "3" || n.notes["request_id"] != header.Get("X-Request-Id") {
		t.Errorf("the span is told %+v", n)
	}
	if line[server.PromptNote] == nil {
		t.Error("the log lacks what was asked")
	}
	want := []string{"cached_tokens", "completion_tokens", "decode", "prefill", "prompt_tokens", "queue", "request_id"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(n.notes))); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
}
