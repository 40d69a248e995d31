package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// TestServedMetrics: what is scraped is what the model says of itself, and what became
// of the requests.
func TestServedMetrics(t *testing.T) {
	s := serveNamed(t, []string{"babble"}, server.Config{Parallel: 4}, realizar.Options{}, modeltest.Llama(t))
	m := s.model
	for range 2 {
		for _, err := range m.Generate(t.Context(), &realizar.Request{
			Prompt: "hello world " + strings.Repeat("the world ", 30), Generation: realizar.Generation{MaxTokens: new(5), IgnoreEnd: true},
		}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, body := range []string{`{"tokens": [1]}`, `{"tokens": [1]}`, `{"tokens": 1}`} {
		s.post("/detokenize", body)
	}
	families, want := server.Scrape(t, s.URL+"/metrics"), m.Metrics()
	if want.CacheHits == 0 || want.Pools[0].Idle == 0 {
		t.Fatalf("the cache was of no use: %+v", want)
	}
	for name, value := range map[string]float64{
		"vllm:num_requests_running":       0,
		"vllm:generation_tokens_total":    10,
		"vllm:prompt_tokens_total":        want.PromptLength.Sum,
		"realizar_computed_tokens_total":  float64(want.PromptTokens),
		"vllm:prefix_cache_queries_total": float64(want.CacheQueries),
		"vllm:prefix_cache_hits_total":    float64(want.CacheHits),
		"realizar_steps_total":            float64(want.Steps),
	} {
		if got := server.Values(t, families[name], "")[""]; got != value {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
	if diff := cmp.Diff(want.TimeToFirst, server.HistogramOf(t, families["vllm:time_to_first_token_seconds"])); diff != "" {
		t.Errorf("time to the first token (-want +got)\n%s", diff)
	}
	if got := server.Values(t, families["vllm:request_success_total"], "finished_reason")["length"]; got != 2 {
		t.Errorf("%v answers ended by length, want 2", got)
	}
	answered := map[string]float64{}
	for _, m := range families["realizar_http_requests_total"].GetMetric() {
		for _, l := range m.Label {
			if l.GetName() == "code" {
				answered[l.GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"200": 2, "400": 1}, answered); diff != "" {
		t.Errorf("requests by status (-want +got)\n%s", diff)
	}
	if h := server.HistogramOf(t, families["realizar_http_request_seconds"]); h.Count() != 3 {
		t.Errorf("%d requests took a time, want 3", h.Count())
	}
}
