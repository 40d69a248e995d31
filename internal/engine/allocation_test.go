package engine_test

import (
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A longer answer allocates what its pages' tables grow by, and nothing for each
// step.
func TestStepsAllocateNothing(t *testing.T) {
	e := open(t, plantest.Model(t, nil), engine.Config{Context: 340, Parallel: 1, Cache: tensor.F16})
	allocated := func(n int) float64 {
		return testing.AllocsPerRun(2, func() {
			s, err := e.NewSequence(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Decode(t.Context(), tokens(1, 1), n, sampled, func(engine.Result) (bool, error) { return true, nil })
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocated(40), allocated(340)
	if many-few > 30 {
		t.Errorf("40 tokens take %v allocations, 340 take %v", few, many)
	}
}
