package engine_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A watch gets every completed step, in order and one at a time, before the callers get its
// results, with its contents and times.
func TestWatch(t *testing.T) {
	for _, wanted := range []engine.Watch{{}, {Timed: true}, {Spans: true}, {Timed: true, Spans: true}} {
		synctest.Test(t, func(t *testing.T) {
			m := &hashModel{windows: []int{0, 100}}
			f := &fake{
				model: m, broken: t.Errorf, rng: rand.New(rand.NewPCG(3, 3)),
				pause: func(n int, _ <-chan struct{}) { time.Sleep(time.Duration(n)) },
			}
			const lost = 20 // the lost step
			f.lose = func(*plan.Batch) bool { return f.steps+1 == lost }
			var busy, mu sync.Mutex
			var last engine.StepReport
			var chosen, tokens, reports, given int
			watch := wanted
			watch.Step = func(r *engine.StepReport) {
				if !busy.TryLock() {
					t.Error("two steps are told of at one time")
				}
				defer busy.Unlock()
				time.Sleep(time.Nanosecond)
				mu.Lock()
				defer mu.Unlock()
				reports++
				tokens += r.Tokens
				chosen += r.Chosen
				if skipped := r.Number == last.Number+2 && r.Number-1 == lost; r.Number != last.Number+1 && !skipped {
					t.Errorf("step %d follows %d", r.Number, last.Number)
				}
				if r.Begun.Before(r.Submitted) || r.Begun.Before(last.Done) || !r.Done.After(r.Begun) || r.Begun.After(r.Submitted) && r.Begun.Sub(last.Done) > 50_000 {
					t.Errorf("step %d was submitted %v, began %v and was done %v; the one before was done %v", r.Number, r.Submitted, r.Begun, r.Done, last.Done)
				}
				if r.Capture != time.Duration(r.Number)*time.Millisecond {
					t.Errorf("step %d was captured for %v", r.Number, r.Capture)
				}
				if r.Seqs < 1 || r.Tokens < r.Seqs || r.Prompt > r.Tokens || r.Rows < r.Chosen || r.Prompt > 0 && r.Tokens == r.Seqs {
					t.Errorf("step %+v", r)
				}
				times, spans := f.spent(&plan.Batch{Timed: watch.Timed, Spans: watch.Spans}, int64(r.Number))
				if r.Times != times || !slices.Equal(r.Spans, spans) {
					t.Errorf("step %d took %+v and %+v, want %+v and %+v", r.Number, r.Times, r.Spans, times, spans)
				}
				last = *r
			}
			e, err := engine.New(t.Context(), m.program(), f, engine.Config{Context: 512, Parallel: 3, Cache: tensor.F32, Watch: &watch}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Setup(); got != (plan.Setup{Load: 3, Compile: 4}) {
				t.Errorf("before the first step: %+v", got)
			}
			rng := rand.New(rand.NewPCG(4, 4))
			var all sync.WaitGroup
			for i := range 6 {
				r := &engine.Request{Prompt: ids(rng, 1+90*i), Tokens: 20, Outputs: []engine.Output{{Token: 0, Want: plan.WantHidden}}[:min(i, 1)]}
				all.Go(func() {
					_, _ = e.Run(t.Context(), r, func(got *engine.Result) (bool, error) {
						mu.Lock()
						defer mu.Unlock()
						if got.Chosen {
							given++
						}
						if given > chosen {
							t.Errorf("%d tokens are given, and steps that chose %d were told of", given, chosen)
						}
						return true, nil
					})
				})
			}
			all.Wait()
			steps := e.Metrics().Steps
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if steps < lost || reports != int(steps)-1 || given == 0 || tokens < given {
				t.Errorf("%d steps of %d were told of, of %d tokens; the callers have %d", reports, steps, tokens, given)
			}
			if got, n := e.Setup().Capture, time.Duration(steps); got != n*(n+1)/2*time.Millisecond {
				t.Errorf("after %d steps they were captured for %v", n, got)
			}
		})
	}
}
