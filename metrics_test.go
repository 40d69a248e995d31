package realizar_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
)

func TestMetrics(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 4})
	before := m.Metrics()
	if before.Steps != 0 || len(before.Pools) != 1 || before.Pools[0].Pages != 4*256/32 || before.TimeToFirst.Count() != 0 {
		t.Errorf("a model that has done nothing has %+v", before)
	}
	prompt := ids(70)
	g := realizar.Generation{MaxTokens: new(5), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1}}
	whole := generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g})
	generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g})
	g.StopTokens = whole.tokens[:1]
	generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g})
	// The answer is longer than the number of tokens that the engine computes ahead of its caller.
	g.StopTokens, g.Stop, g.MaxTokens = nil, []string{whole.text[:1]}, new(150)
	generate(t, m, realizar.Request{PromptTokens: prompt, Generation: g})
	g.Stop = nil
	for _, err := range m.Generate(t.Context(), &realizar.Request{PromptTokens: prompt, Generation: g}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	masked := errors.New("no")
	g.Mask = func(int, []int32, []uint32) error { return masked }
	if _, err := collect(m.Generate(t.Context(), &realizar.Request{PromptTokens: prompt, Generation: g})); !errors.Is(err, masked) {
		t.Error(err)
	}
	s := m.Metrics()
	if s.Running != 0 || s.Waiting != 0 || s.Pools[0].Used != 0 || s.Pools[0].Idle == 0 || s.Preemptions != 0 || s.Saves != 0 {
		t.Errorf("after all answers: %+v", s)
	}
	if s.CacheQueries < 4*70 || s.CacheHits < 3*64 || s.CacheHits > s.CacheQueries || s.PromptTokens < 70 || s.AnswerTokens < 5+5+1+1 || s.Steps < 10 {
		t.Errorf("after all answers: %+v", s)
	}
	want := map[realizar.Ending]uint64{realizar.EndedByLength: 2, realizar.EndedByStop: 1, realizar.EndedByStopString: 1, realizar.Cancelled: 1}
	if diff := cmp.Diff(want, s.Ended); diff != "" {
		t.Errorf("endings (-want +got)\n%s", diff)
	}
	for name, h := range map[string]realizar.Histogram{"time to first": s.TimeToFirst, "queue": s.Queue, "prefill": s.Prefill, "prompts": s.PromptLength} {
		if n := h.Count(); n != 5 || len(h.Counts) != len(h.Bounds)+1 {
			t.Errorf("%s: %d values, want 5", name, n)
		}
	}
	if s.PromptLength.Sum != 5*70 {
		t.Errorf("prompts of %v tokens, want 350", s.PromptLength.Sum)
	}
	before.Pools[0].Pages, s.TimeToFirst.Counts[0] = 0, 1000
	if again := m.Metrics(); again.Pools[0].Pages == 0 || again.TimeToFirst.Count() != 5 {
		t.Errorf("metrics are not copies: %+v", again)
	}
}
