package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// conv is [plan.Conv].
type conv struct{ ordinary }

type convArgs struct {
	x                       driver.DevicePtr
	xStride, cols           int32
	w, bias                 driver.DevicePtr
	width, _                int32
	state                   slotArgs
	sequence, starts, count driver.DevicePtr
	out                     forms
}

func (conv) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	n := s.Node()
	x, out := c.forms(n.In[0]), c.forms(n.Out)
	a := convArgs{
		x: x.f32, xStride: x.stride, cols: x.cols, w: c.weight(n.Weight), bias: c.weight(n.Bias), width: int32(n.Weight.Cols()),
		state: c.slots(n.State), sequence: c.step.sequence, starts: c.step.starts, count: c.count(n.Out), out: out,
	}
	ls, err := c.one("conv", "conv", plan.Tokens, arguments(&a), 256, elementGrid(plan.Tokens, out.stride))
	if err == nil {
		weights, row := c.weightBytes(n.Weight)+c.weightBytes(n.Bias), c.read(n.In[0], inFloats)+c.written(n.Out)
		state := 2 * 4 * c.l.p.States[n.State].Size
		ls[0].moves = func(b *plan.Batch) int { return weights + len(b.Tokens)*row + b.Seqs()*state }
	}
	return ls, err
}
