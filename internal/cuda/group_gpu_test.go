//go:build gpu

package cuda

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Two parts of a model on one GPU compute the bits of the whole one. Their kernels run at the same
// time, so none may begin before the one before it has ended, and steps are small: those that wait
// would take the place of those for which they wait.
func TestTwoPartsOfOneGPU(t *testing.T) {
	one := openGPU(t, Options{})
	g := &Group{Backend: openGPU(t, Options{}), patience: linkPatience, packets: 1024, team: 1}
	g.Version = device.Programmatic - 1
	g.all = []*Backend{g.Backend, g.Backend}
	for name, model := range plantest.Models {
		t.Run(name, func(t *testing.T) {
			p, lengths := model(t, nil), [2]int{40, 5}
			g := *g
			for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				if p.MisfitHead(cache) > 0 {
					continue
				}
				base := plan.Limits{Cache: cache, Activations: tensor.F16}
				want := plantest.LogitsOfTwo(t, one, p, base, lengths)
				for _, g.apart = range []bool{false, true} {
					for _, tokens := range []int{23, lengths[0]} {
						plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(&g, 2), p, base, lengths, tokens), want)
					}
				}
			}
		})
	}
}

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
	both, apart := mesh.New(g, 2), *g
	apart.apart = true
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
					plantest.SameAsOne(t, plantest.LogitsInSteps(t, both, p, base, lengths, lengths[0]), want)
					plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(&apart, 2), p, base, lengths, lengths[0]), want)
				})
			}
		}
	})
	t.Run("Suite", func(t *testing.T) {
		plantest.Except(t, both, "Spans", "Observed", "NotFinite", "NotFiniteReused", "NotFiniteExperts")
	})
}
