package engine_test

import (
	"testing"

	"github.com/realizar/realizar/internal/engine"
)

// An end that only the caller sees, such as a stop string, wastes the row in flight and no step:
// other sequences of the batch lose nothing, and no step is submitted for a sequence that was alone.
func TestEndOfTheCallerCostsARow(t *testing.T) {
	for _, others := range []int{0, 1, 30} {
		scripting(t, engine.Config{Context: 400, Parallel: 40}, &hashModel{windows: []int{0}}, func(s *script) {
			for i := range others {
				s.ask(100+i, 60, nil, nil)
			}
			const end = 7 // tokens after which the caller ends the answer
			c := s.ask(2, 60, func(r *engine.Request) { r.Ends = true }, func(got *engine.Result) bool { return got.Index+1 < end })
			for range 40 {
				if others > 0 || !c.over {
					s.next(nil)
				}
			}
			rows, empty := 0, 0
			for _, step := range s.b.steps {
				if _, ok := step[2]; ok {
					rows++
				}
				if len(step) == 0 {
					empty++
				}
			}
			// The prompt's step samples the first token.
			if c.chosen != end || rows > end+1 || empty > 0 {
				t.Errorf("beside %d others %d tokens took %d rows, want %d at most; %d steps are empty", others, c.chosen, rows, end+1, empty)
			}
			if others > 0 {
				return
			}
			if n := len(s.b.steps); n > end+1 {
				t.Errorf("%d steps for %d tokens", n, end)
			}
			s.steps(len(s.b.steps) - end)
		})
	}
}
