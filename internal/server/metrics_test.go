package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/realizar/realizar"
)

// scrape reads the metrics at url, by name.
func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d", url, r.StatusCode)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// values returns the values of a family by a label, or by "" if the family has one value.
func values(t *testing.T, f *dto.MetricFamily, label string) map[string]float64 {
	t.Helper()
	if f == nil {
		t.Fatal("the family is not there")
	}
	kind := dto.MetricType_GAUGE
	if strings.HasSuffix(f.GetName(), "_total") {
		kind = dto.MetricType_COUNTER
	}
	if f.GetType() != kind {
		t.Errorf("%s is a %s, want a %s", f.GetName(), f.GetType(), kind)
	}
	all := map[string]float64{}
	for _, m := range f.Metric {
		key, model := "", ""
		for _, l := range m.Label {
			switch l.GetName() {
			case label:
				key = l.GetValue()
			case "model_name":
				model = l.GetValue()
			}
		}
		if model != "babble" {
			t.Errorf("%s is of model %q", f.GetName(), model)
		}
		all[key] += m.GetGauge().GetValue() + m.GetCounter().GetValue() // one of them is set
	}
	return all
}

// histogram returns the only histogram of a family, in the form of the model's metrics.
func histogram(t *testing.T, f *dto.MetricFamily) realizar.Histogram {
	t.Helper()
	if f == nil || f.GetType() != dto.MetricType_HISTOGRAM || len(f.Metric) != 1 {
		t.Fatalf("%v is not one histogram", f)
	}
	from := f.Metric[0].GetHistogram()
	h := realizar.Histogram{Sum: from.GetSampleSum()}
	var below uint64
	for _, b := range from.Bucket {
		if b.GetUpperBound() < 1e300 {
			h.Bounds = append(h.Bounds, b.GetUpperBound())
		}
		h.Counts = append(h.Counts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	if below != from.GetSampleCount() {
		t.Errorf("%s has %d values up to infinity, but %d in all", f.GetName(), below, from.GetSampleCount())
	}
	return h
}

// madeUp returns metrics with a different number in every place.
func madeUp() realizar.Metrics {
	next := 0.0
	h := func() realizar.Histogram {
		next++
		return realizar.Histogram{Bounds: []float64{.5, 1, 20}, Counts: []uint64{uint64(next), 0, 3, uint64(10 * next)}, Sum: next / 4}
	}
	return realizar.Metrics{
		Running: 3, Waiting: 7,
		Pools:  []realizar.PoolMetrics{{PageTokens: 32, Pages: 100, Used: 25, Idle: 11, HostPages: 50, HostUsed: 20}, {PageTokens: 32, Pages: 10, Used: 4, Idle: 6}},
		Device: realizar.DeviceMemory{Name: "Large Abacus", Free: 1 << 30, Total: 3 << 30}, Busy: 1500 * time.Millisecond,
		Proposals: 1010, ProposedTokens: 1011, AcceptedTokens: 1012, AcceptedAt: [realizar.MaxSpeculativeTokens]uint64{0: 1013, 2: 1014},
		Steps: 1001, PromptTokens: 1002, AnswerTokens: 1003, CacheQueries: 1004, CacheHits: 1005, Preemptions: 1006, Evictions: 1007, Saves: 1008, Restores: 1009,
		Ended: map[realizar.Ending]uint64{
			realizar.EndedByStop: 1, realizar.EndedByStopString: 10, realizar.EndedByLength: 100, realizar.Cancelled: 1000, realizar.EndedByError: 10000,
		},
		TimeToFirst: h(), BetweenTokens: h(), EndToEnd: h(), Queue: h(), Prefill: h(), Decode: h(), PromptLength: h(), AnswerLength: h(),
	}
}

func TestModelMetrics(t *testing.T) {
	want := madeUp()
	families := scrape(t, shown(t, func() realizar.Metrics { return want }))
	for name, value := range map[string]float64{
		"vllm:num_requests_running":       3,
		"vllm:num_requests_waiting":       7,
		"vllm:kv_cache_usage_perc":        .4, // of the second pool
		"vllm:prompt_tokens_total":        want.PromptLength.Sum,
		"vllm:generation_tokens_total":    1003,
		"vllm:prefix_cache_queries_total": 1004,
		"vllm:prefix_cache_hits_total":    1005,
		"vllm:num_preemptions_total":      1006,
		"realizar_steps_total":            1001,

		"vllm:spec_decode_num_drafts_total":          1010,
		"vllm:spec_decode_num_draft_tokens_total":    1011,
		"vllm:spec_decode_num_accepted_tokens_total": 1012,
		"realizar_step_seconds_total":                1.5,
		"realizar_computed_tokens_total":             1002,
		"realizar_cache_evictions_total":             1007,
		"realizar_cache_saves_total":                 1008,
		"realizar_cache_restores_total":              1009,
	} {
		if diff := cmp.Diff(map[string]float64{"": value}, values(t, families[name], "")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	for name, h := range map[string]realizar.Histogram{
		"vllm:time_to_first_token_seconds":  want.TimeToFirst,
		"vllm:inter_token_latency_seconds":  want.BetweenTokens,
		"vllm:e2e_request_latency_seconds":  want.EndToEnd,
		"vllm:request_queue_time_seconds":   want.Queue,
		"vllm:request_prefill_time_seconds": want.Prefill,
		"vllm:request_decode_time_seconds":  want.Decode,
		"vllm:request_prompt_tokens":        want.PromptLength,
		"vllm:request_generation_tokens":    want.AnswerLength,
	} {
		if diff := cmp.Diff(h, histogram(t, families[name])); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	for _, c := range []struct {
		name, label string
		want        map[string]float64
	}{
		{"vllm:request_success_total", "finished_reason", map[string]float64{"stop": 11, "length": 100, "abort": 1000, "error": 10000}},
		{"vllm:cache_config_info", "block_size", map[string]float64{"32": 1}},
		{"vllm:cache_config_info", "num_gpu_blocks", map[string]float64{"100": 1}},
		{"vllm:cache_config_info", "num_cpu_blocks", map[string]float64{"50": 1}},
		{"realizar_device_memory_total_bytes", "device", map[string]float64{"Large Abacus": 3 << 30}},
		{"realizar_device_memory_free_bytes", "device", map[string]float64{"Large Abacus": 1 << 30}},
		{"realizar_cache_pages", "state", map[string]float64{"used": 25 + 4 + 20, "idle": 11 + 6, "empty": 64 + 30}},
	} {
		if diff := cmp.Diff(c.want, values(t, families[c.name], c.label)); diff != "" {
			t.Errorf("%s by %s (-want +got)\n%s", c.name, c.label, diff)
		}
	}
	if got := families["realizar_answers_admitted"].GetMetric()[0].GetGauge().GetValue(); got != 12 {
		t.Errorf("%v answers are admitted, want 12", got)
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if families[name] == nil {
			t.Errorf("no %s among %q", name, slices.Sorted(maps.Keys(families)))
		}
	}
}

func TestMetricsBeforeAnyRequest(t *testing.T) {
	families := scrape(t, shown(t, func() realizar.Metrics { return realizar.Metrics{} }))
	got := values(t, families["vllm:request_success_total"], "finished_reason")
	if diff := cmp.Diff(map[string]float64{"stop": 0, "length": 0, "abort": 0, "error": 0}, got); diff != "" {
		t.Errorf("endings (-want +got)\n%s", diff)
	}
}

// Requests that end at the same time are all counted, by route and status.
func TestAnsweredRequests(t *testing.T) {
	m := newMetrics(func() state { return state{} })
	const each = 50
	routes, statuses := []string{"POST /c", "", "GET /a", "POST /b"}, []int{200, 404, 499}
	var all sync.WaitGroup
	for range each {
		for _, route := range routes {
			for _, status := range statuses {
				all.Go(func() {
					x := &Exchange{Request: &http.Request{Pattern: route}, status: status, begun: time.Now().Add(-3 * time.Second)}
					if status == 404 {
						x.err = &panicError{}
					}
					m.answered(x)
				})
			}
		}
		all.Go(func() { m.appendRequests(nil) })
	}
	all.Wait()
	text := string(m.appendRequests(nil))
	for _, route := range []string{"POST /c", "none", "GET /a", "POST /b"} {
		for _, status := range statuses {
			if want := fmt.Sprintf("realizar_http_requests_total{route=%q,code=\"%d\"} %d\n", route, status, each); !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
		for bound, n := range map[string]int{"2.5": 0, "640": len(statuses) * each, "+Inf": len(statuses) * each} {
			if want := fmt.Sprintf("realizar_http_request_seconds_bucket{route=%q,le=%q} %d\n", route, bound, n); !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
	}
	if want := fmt.Sprintf("realizar_http_panics_total %d\n", len(routes)*each); !strings.Contains(text, want) {
		t.Errorf("no %s", want)
	}
	if t.Failed() {
		t.Log(text)
	}
}

// shown serves the metrics that read returns, and returns the address.
func shown(t *testing.T, read func() realizar.Metrics) string {
	t.Helper()
	m := NewMetrics("babble", read, func() state { return state{admitted: 12} })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = m.show(&Exchange{Request: r, w: w}) }))
	t.Cleanup(s.Close)
	return s.URL
}
