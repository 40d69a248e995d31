package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// A traced request's tokens have the times of its own steps, the first those of the whole prompt.
// Steps of other requests are not traced for it.
func TestLayers(t *testing.T) {
	scripting(t, engine.Config{Context: 1000, Parallel: 4}, &hashModel{windows: []int{0}}, func(s *script) {
		s.ask(2, 40, nil, func(got *engine.Result) bool {
			if got.Trace != nil {
				t.Errorf("token %d of a request that is not traced has %+v", got.Index, got.Trace)
			}
			return true
		})
		s.steps(3)
		begun := len(s.b.steps)
		var times [][]time.Duration
		trace := func(r *engine.Request) {
			r.Trace, r.Outputs = true, []engine.Output{{Token: 5, Want: plan.WantLogits}}
		}
		one := s.ask(600, 6, trace, func(got *engine.Result) bool {
			if got.Chosen {
				times = append(times, got.Trace.Layers)
			} else if got.Trace != nil {
				t.Errorf("an output of the prompt has %+v", got.Trace)
			}
			return true
		})
		s.until(one, 20)
		s.done(one, 6)
		s.steps(2) // of the other one alone
		ended := len(s.b.steps)
		want := make([][]time.Duration, 6)
		for i, step := range s.b.steps {
			part, in := step[600]
			if in != s.b.traced[i] {
				t.Errorf("step %d is %v; traced: %v", i+1, step, s.b.traced[i])
			}
			if n := part.start + part.tokens - 600; in && n < len(want) {
				n = max(0, n)
				if want[n] == nil {
					want[n] = make([]time.Duration, 2)
				}
				want[n][0]++
				want[n][1] += time.Duration(i+1) * time.Microsecond
			}
		}
		if want[0][0] != 3 || begun == ended {
			t.Fatalf("the prompt was read in %d steps, want 3", want[0][0])
		}
		if !slices.EqualFunc(times, want, slices.Equal) {
			t.Errorf("the times are %v, want %v", times, want)
		}
		// If no token is sampled, there are no times.
		at := len(s.b.steps)
		scored := s.ask(500, 0, trace, nil)
		s.until(scored, 10)
		if slices.Contains(s.b.traced[at:], true) {
			t.Error("steps are traced for a request that chooses no token")
		}
	})
}

// Steps that run an answer's tokens again after preemption count to its next token.
func TestLayersOfPreempted(t *testing.T) {
	scripting(t, engine.Config{Context: 200, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		var times [][]time.Duration
		low := s.ask(70, 20, func(r *engine.Request) { r.Trace = true }, func(got *engine.Result) bool {
			times = append(times, got.Trace.Layers)
			return true
		})
		s.steps(3)
		high := s.ask(4, 3, func(r *engine.Request) { r.Priority = 1 }, nil)
		s.until(high, 10)
		s.until(low, 40)
		if low.stats.Preemptions == 0 || len(times) != 20 {
			t.Fatalf("%+v, %d tokens", low.stats, len(times))
		}
		var steps, numbers time.Duration
		for _, layers := range times {
			steps, numbers = steps+layers[0], numbers+layers[1]
		}
		var want, wantNumbers time.Duration
		for i, step := range s.b.steps {
			if _, in := step[70]; in {
				want, wantNumbers = want+1, wantNumbers+time.Duration(i+1)*time.Microsecond
			}
		}
		if steps != want || numbers != wantNumbers {
			t.Errorf("%d steps that add up to %v, want %d and %v: %v", steps, numbers, want, wantNumbers, times)
		}
	})
}
