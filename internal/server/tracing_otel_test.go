//go:build otel

package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// TestSpans checks that a collector is sent a span for each request, with its outcome.
func TestSpans(t *testing.T) {
	var mu sync.Mutex
	spans := map[string]*otlp.Span{}
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(data, &sent) != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s of %d bytes (%v)", r.URL.Path, len(data), err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range sent.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					spans[span.Name] = span
				}
			}
		}
	}))
	defer h.Close()
	to, stop, err := server.NewSpans(t.Context(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Spans: to}, realizar.Options{})
	r, err := http.NewRequest(http.MethodPost, s.URL+"/v1/completions", strings.NewReader(`{"model": "small", "prompt": "hello", "max_tokens": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if got := s.send(r); got.status != 200 || got.header.Get("X-Trace-Id") != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("%d of trace %q", got.status, got.header.Get("X-Trace-Id"))
	}
	if got := s.post("/detokenize", `{}`).header.Get("X-Trace-Id"); len(got) != 32 {
		t.Errorf("a request of no trace begins %q", got)
	}
	s.Close() // waits for the handlers
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	span := spans["text_completion small"]
	if span == nil || len(spans) != 2 {
		t.Fatalf("the spans are %v", spans)
	}
	if string(span.TraceId) != "\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36" || string(span.ParentSpanId) != "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7" {
		t.Errorf("trace %x, parent %x", span.TraceId, span.ParentSpanId)
	}
	got := map[string]any{}
	for _, a := range span.Attributes {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_IntValue:
			got[a.Key] = v.IntValue
		case *common.AnyValue_DoubleValue:
			got[a.Key] = v.DoubleValue > 0
		default:
			got[a.Key] = a.Value.GetStringValue()
		}
	}
	for name, want := range map[string]any{
		"http.request.method": "POST", "http.route": "/v1/completions", "url.path": "/v1/completions", "http.response.status_code": int64(200),
		"gen_ai.operation.name": "text_completion", "gen_ai.provider.name": "realizar", "gen_ai.request.model": "small", "gen_ai.response.model": "small",
		"gen_ai.usage.input_tokens": int64(1), "gen_ai.usage.output_tokens": int64(3), "gen_ai.usage.cache_read.input_tokens": int64(0),
		"gen_ai.response.time_to_first_chunk": true,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
