package server

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/watch"
)

// TestWatched: whoever watches a server finds all that it shows.
func TestWatched(t *testing.T) {
	want := madeUp()
	m := NewMetrics("babble", func() realizar.Metrics { return want }, func() state { return state{} })
	request, err := http.NewRequest(http.MethodPost, "/v1/completions", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Pattern = "POST /v1/completions"
	m.answered(&Exchange{Request: request, status: http.StatusTooManyRequests})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = m.show(&Exchange{Request: r, w: w}) }))
	defer s.Close()
	w, err := watch.New(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for c, v := range map[watch.Counter]float64{
		watch.PromptTokens: want.PromptLength.Sum, watch.ComputedTokens: 1002, watch.AnswerTokens: 1003, watch.Steps: 1001, watch.StepSeconds: 1.5,
		watch.CacheQueries: 1004, watch.CacheHits: 1005, watch.Preemptions: 1006, watch.Evictions: 1007, watch.Saves: 1008, watch.Restores: 1009,
		watch.Stopped: 11, watch.Full: 100, watch.Left: 1000, watch.Failed: 10000, watch.Errors: 1,
	} {
		if got.Counter(c) != v {
			t.Errorf("counter %d is %v, want %v", c, got.Counter(c), v)
		}
	}
	if !math.IsNaN(got.Counter(watch.Other)) {
		t.Errorf("answers ended in %v ways that are not known", got.Counter(watch.Other))
	}
	if got.Running != 3 || got.Waiting != 7 || got.CacheUse != .4 {
		t.Errorf("%v running, %v waiting, %v of the cache", got.Running, got.Waiting, got.CacheUse)
	}
	pools := []watch.Pool{{Model: "babble", Number: 0, Used: 25, Idle: 11, Empty: 64, HostUsed: 20, HostEmpty: 30}, {Model: "babble", Number: 1, Used: 4, Idle: 6}}
	if diff := cmp.Diff(pools, got.Pools); diff != "" {
		t.Errorf("pools (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]watch.Device{{Name: "Large Abacus", Free: 1 << 30, Total: 3 << 30}}, got.Devices); diff != "" {
		t.Errorf("devices (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"babble"}, got.Models); diff != "" {
		t.Errorf("models (-want +got)\n%s", diff)
	}
	for l, h := range map[watch.Latency]realizar.Histogram{
		watch.FirstToken: want.TimeToFirst, watch.BetweenTokens: want.BetweenTokens, watch.EndToEnd: want.EndToEnd, watch.Queue: want.Queue,
	} {
		of := got.Latency(l)
		if of.Count() != float64(h.Count()) {
			t.Errorf("latency %d: %v values, want %d", l, of.Count(), h.Count())
		}
		if q := of.Quantile(.99); !q.Above || q.Value != 20 {
			t.Errorf("latency %d: %+v at 99%%, want above 20", l, q)
		}
	}
}
