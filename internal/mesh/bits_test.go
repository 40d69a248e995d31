package mesh_test

import (
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
						plantest.SameAsOne(t, plantest.LogitsOfTwo(t, mesh.New(cpu.New(1), parts), p, base, lengths), want)
					})
				}
			}
		})
	}
}
