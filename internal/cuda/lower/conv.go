package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// conv implements [plan.Conv].
type conv struct{ ordinary }

type convArgs struct {
	x                       driver.DevicePtr
	xStride, cols           int32
	w, bias                 driver.DevicePtr
	width, mapped           int32
	state                   SlotArgs
	sequence, starts, count driver.DevicePtr
	out                     device.Forms
	function                functionArgs
	_                       int32
}

func (conv) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, out := c.forms(n.In[0]), c.forms(s.Out())
	a := convArgs{
		x: x.F32, xStride: x.Stride, cols: x.Cols, w: c.weight(n.Weight), bias: c.weight(n.Bias), width: int32(n.Weight.Cols()),
		state: c.Slots(n.State), sequence: c.Step.sequence, starts: c.Step.starts, count: c.count(n.Out), out: out,
	}
	for _, m := range s.Then { // a map
		a.mapped, a.function = 1, functionOf(m)
	}
	ls, err := c.one("conv", "conv", plan.Tokens, device.Arguments(&a), 256, elementGrid(plan.Tokens, out.Stride))
	if err == nil {
		weights, row := c.weightBytes(n.Weight)+c.weightBytes(n.Bias), c.read(n.In[0], inFloats)+c.written(s.Out())
		state := 2 * 4 * c.Layout.p.States[n.State].Size
		ls[0].Moves = func(b *plan.Batch) int { return weights + len(b.Tokens)*row + b.Seqs()*state }
	}
	return ls, err
}
