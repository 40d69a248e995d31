package lower

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// stateSpace implements [plan.StateSpace].
type stateSpace struct{ ordinary }

// A block keeps the state of so many columns of a head in shared memory: more if they fit.
const (
	fewColumns, manyColumns = 32, 64

	manyColumnsStates = 192 // the most states for many columns
	mostStates        = 448
)

func (stateSpace) check(n *plan.Node) error {
	if a := n.Attr.(plan.StateSpaceAttr); a.States > mostStates {
		return fmt.Errorf("no kernel for %d states of a head, of which %d is the most", a.States, mostStates)
	}
	return nil
}

func (stateSpace) writes(s *fuse.Stage) bool {
	return s.Node().Attr.(plan.StateSpaceAttr).HeadDim%32 == 0
}

type stateSpaceArgs struct {
	x, dt                          driver.DevicePtr
	xStride, dtStride              int32
	heads, headDim, groups, states int32
	stepMin, stepMax               float32
	a, skip, bias                  driver.DevicePtr
	state                          SlotArgs
	rows                           rowsPoolArgs
	table                          tableArgs
	starts, seqs, count            driver.DevicePtr
	y                              device.Forms
}

func (stateSpace) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.StateSpaceAttr)
	x := c.forms(n.In[0])
	a := stateSpaceArgs{
		x: x.F32, xStride: x.Stride, heads: int32(attr.Heads), headDim: int32(attr.HeadDim), groups: int32(attr.Groups),
		states: int32(attr.States), stepMin: float32(attr.StepMin), stepMax: float32(attr.StepMax), a: c.weight(attr.A), skip: c.weight(attr.Skip),
		bias: c.weight(attr.StepBias), state: c.Slots(n.State), starts: c.Step.starts, seqs: c.Step.counts + countSeqs, count: c.Step.counts + countTokens, y: c.forms(n.Out),
	}
	if attr.Steps() {
		dt := c.forms(n.In[1])
		a.dt, a.dtStride = dt.F32, dt.Stride
	}
	a.rows, a.table = c.rowsPool(attr.Rows)
	args := device.Arguments(&a)
	rows, err := c.launch("statespace", "rows", plan.Tokens, args, 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (attr.Row() + 255) / 256, Y: sh.Tokens}
	})
	if err != nil {
		return nil, err
	}
	name, columns := "statespace_64", manyColumns
	if attr.States > manyColumnsStates || attr.HeadDim <= fewColumns {
		name, columns = "statespace_32", fewColumns
	}
	state, err := c.launchShared("statespace", name, plan.Tokens, args, 256, 4*attr.States*(columns+1), 0, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (attr.HeadDim + columns - 1) / columns, Y: attr.Heads, Z: c.seqs(sh)}
	})
	read, row := c.read(n.In[0], inFloats), 4*attr.Row()
	rows.Moves = func(b *plan.Batch) int { return len(b.Tokens) * (read + row) }
	state.Moves = recurrentMoves(attr.Matrix(), attr.Row(), c.written(n.Out), 1, math.MaxInt)
	return []Launch{rows, state}, err
}
