package mesh_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// models are programs with all operations.
var models = map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{
	"dense": plantest.Model, "experts": plantest.MoEModel, "recurrent": plantest.RecurrentModel, "delta": plantest.DeltaModel,
	"states": plantest.StatesModel, "latent": plantest.LatentModel, "sparse": plantest.SparseModel,
	"compressed": plantest.CompressedModel, "forms": plantest.FormsModel,
}

// logits runs two sequences together, cut into steps of different sizes.
func logits(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits) [][]float32 {
	t.Helper()
	r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, 32, 2, 96, 16, base))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	ids := func(n int) (list []int32) {
		for range n {
			list = append(list, int32(rng.IntN(90)))
		}
		return list
	}
	seqs := []*plantest.Seq{r.Add(ids(68), 23), r.Add(ids(9), 1)}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	if err := r.Exe.Close(); err != nil {
		t.Error(err)
	}
	return append(seqs[0].Logits, seqs[1].Logits...)
}

// same reports the first row with other bits.
func same(t *testing.T, got, want [][]float32) {
	t.Helper()
	for i := range want {
		for j, w := range want[i] {
			if math.Float32bits(got[i][j]) != math.Float32bits(w) {
				t.Fatalf("row %d, token %d: logit %v, on one device %v", i, j, got[i][j], w)
			}
		}
	}
}

// Several devices compute the bits of one.
func TestBits(t *testing.T) {
	for name, model := range models {
		t.Run(name, func(t *testing.T) {
			p := model(t, nil)
			for _, base := range []plan.Limits{{Cache: tensor.F16, Activations: cpu.Rounds}, {Cache: tensor.Q8_0, Activations: tensor.F32}} {
				if p.MisfitHead(base.Cache) > 0 {
					continue
				}
				want := logits(t, cpu.New(1), p, base)
				for _, parts := range longtest.Cases([]int{1, 2, 3, 4, 8}, []int{2, 8}) {
					t.Run(fmt.Sprintf("%v, %d parts", base.Cache, parts), func(t *testing.T) {
						same(t, logits(t, mesh.New(cpu.New(1), parts), p, base), want)
					})
				}
			}
		})
	}
}
