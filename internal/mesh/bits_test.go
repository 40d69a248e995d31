package mesh_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// lengths are those of the sequences that are compared.
var lengths = [2]int{68, 9}

// Several devices compute the bits of one.
func TestBits(t *testing.T) {
	for name, model := range plantest.Models {
		t.Run(name, func(t *testing.T) {
			p := model(t, nil)
			for _, base := range []plan.Limits{{Cache: tensor.F16, Activations: cpu.Rounds}, {Cache: tensor.Q8_0, Activations: tensor.F32}} {
				if p.MisfitHead(base.Cache) > 0 {
					continue
				}
				want := plantest.LogitsOfTwo(t, cpu.New(1), p, base, lengths)
				for _, parts := range longtest.Cases([]int{1, 2, 3, 4, 8}, []int{2, 8}) {
					t.Run(fmt.Sprintf("%v, %d parts", base.Cache, parts), func(t *testing.T) {
						plantest.SameAsOne(t, plantest.LogitsOfTwo(t, mesh.New(cpu.New(1), parts, mesh.ByTensor), p, base, lengths), want)
					})
					t.Run(fmt.Sprintf("%v, %d parts by layer", base.Cache, parts), func(t *testing.T) {
						for _, cut := range []int{1, 1 << 20} {
							plantest.SameAsOne(t, plantest.LogitsOfTwo(t, cutting{mesh.New(cpu.New(1), min(parts, 4), mesh.ByLayer), cut}, p, base, lengths), want)
						}
					})
				}
			}
		})
	}
}

// A cutting backend cuts sequences in steps of that many tokens for each part.
type cutting struct {
	*mesh.Backend
	tokens int
}

func (b cutting) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	e, err := b.Backend.Compile(ctx, p, l, loaded)
	if err == nil {
		mesh.CutFrom(e, b.tokens)
	}
	return e, err
}
