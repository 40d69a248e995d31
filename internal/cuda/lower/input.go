package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// input implements [plan.Input]. A step copies its inputs to the device before its kernels run, so
// there is nothing to launch.
type input struct{ ordinary }

func (input) launches(*Compiler, *fuse.Stage) ([]Launch, error) { return nil, nil }

func (input) writes(*fuse.Stage) bool { return false }

func (input) most(n *plan.Node) float64 {
	if of := n.Attr.(plan.InputAttr).Of; of != nil {
		return operations[of.Op].most(of)
	}
	return 0
}

// An InputCopy is a copy of a value of a step's input from the step's host memory to the device.
type InputCopy struct {
	Attr   plan.InputAttr
	To     device.Forms // the value
	Before int          // bytes of a row of the inputs before it in host memory
	Row    int          // bytes of a row
}

// Inputs returns the copies of a step's inputs to the buffers at base, and the bytes of a row of all
// of them in host memory.
func (l *Layout) Inputs(base driver.DevicePtr) (all []InputCopy, row int) {
	for i := range l.p.Nodes {
		if n := &l.p.Nodes[i]; n.Op == plan.Input {
			to := l.Forms(base, n.Out)
			c := InputCopy{n.Attr.(plan.InputAttr), to, row, 4 * int(to.Stride)}
			row += c.Row
			all = append(all, c)
		}
	}
	return all, row
}
