package mesh_test

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// Several processors satisfy what one does. Spans are those of the first part, which reads its part
// of the weights, and no part has all values to observe.
func TestSuite(t *testing.T) {
	all := longtest.Cases([]int{2, 4}, []int{2})
	longtest.Short(t) // package cpu runs the long form
	for _, parts := range all {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			plantest.Except(t, mesh.New(cpu.New(1), parts, mesh.ByTensor), "Spans", "Observed")
		})
	}
}

// One processor after the other satisfies what one does, for programs that have no inputs already.
func TestSuiteByLayer(t *testing.T) {
	longtest.Short(t) // package cpu runs the long form
	plantest.Except(t, mesh.New(cpu.New(1), 2, mesh.ByLayer), "Observed", "Input", "InputMalformed")
}
