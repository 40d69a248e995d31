//go:build gpu

package cuda

import (
	"testing"

	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"

	"github.com/realizar/realizar/internal/plan"
)

// Two GPUs satisfy what one does, and compute its bits. Spans are those of the first one, and neither
// has all values to observe or runs a step again.
func TestTwoGPUs(t *testing.T) {
	t.Setenv("REALIZAR_UNTRIED_KERNELS", "1")
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
		for name, p := range map[string]*plan.Program{"dense": plantest.Model(t, nil), "experts": plantest.MoEModel(t, nil), "latent": plantest.LatentModel(t, nil), "states": plantest.StatesModel(t, nil)} {
			for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				if p.MisfitHead(cache) > 0 {
					continue
				}
				base := plan.Limits{Cache: cache, Activations: tensor.F16}
				want := groupLogits(t, g.Backend, p, base)
				for i, row := range groupLogits(t, both, p, base) {
					for j, v := range row {
						if v != want[i][j] {
							t.Fatalf("%s, %v cache: row %d, token %d: logit %v, on one GPU %v", name, cache, i, j, v, want[i][j])
						}
					}
				}
			}
		}
	})
	t.Run("Suite", func(t *testing.T) {
		plantest.Except(t, both, "Spans", "Observed", "NotFinite", "NotFiniteReused", "NotFiniteExperts")
	})
}
