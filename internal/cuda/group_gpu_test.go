//go:build gpu

package cuda

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Two GPUs satisfy what one does, and compute its bits. Spans are those of the first one, and neither
// has all values to observe or runs a step again.
func TestTwoGPUs(t *testing.T) {
	g, err := OpenGroup(Options{}, []int{0, 1})
	if err != nil {
		t.Skipf("there are no two GPUs: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	both := mesh.New(g, 2)
	t.Run("Bits", func(t *testing.T) {
		for name, model := range plantest.Models {
			p := model(t, nil)
			for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				if p.MisfitHead(cache) > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, %v cache", name, cache), func(t *testing.T) {
					base, lengths := plan.Limits{Cache: cache, Activations: tensor.F16}, [2]int{68, 9}
					want := plantest.LogitsOfTwo(t, g.Backend, p, base, lengths)
					plantest.SameAsOne(t, plantest.LogitsOfTwo(t, both, p, base, lengths), want)
				})
			}
		}
	})
	t.Run("Suite", func(t *testing.T) {
		plantest.Except(t, both, "Spans", "Observed", "NotFinite", "NotFiniteReused", "NotFiniteExperts")
	})
}
