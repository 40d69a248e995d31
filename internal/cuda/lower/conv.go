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

// maxConvs is the largest number of convolutions of a stage.
const maxConvs = 3

// convRows is how many rows a block computes where there are many.
const convRows = 8

type convsArgs struct{ of [maxConvs]convArgs }

func (conv) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	var all convsArgs
	stride, weights, row, states := int32(0), 0, 0, 0
	for i, n := range s.Nodes {
		x, out := c.forms(n.In[0]), c.forms(s.Product(i))
		a := &all.of[i]
		*a = convArgs{
			x: x.F32, xStride: x.Stride, cols: x.Cols, w: c.weight(n.Weight), bias: c.weight(n.Bias), width: int32(n.Weight.Cols()),
			state: c.Slots(n.State), sequence: c.Step.sequence, starts: c.Step.starts, count: c.count(n.Out), out: out,
		}
		if m := s.Maps[i]; m != nil {
			a.mapped, a.function = 1, functionOf(m)
		}
		stride = max(stride, out.Stride)
		weights += c.weightBytes(n.Weight) + c.weightBytes(n.Bias)
		row += c.read(n.In[0], inFloats) + c.written(s.Product(i))
		states += 2 * 4 * c.Layout.p.States[n.State].Size
	}
	l, err := c.byColumns("conv", "conv", plan.Tokens, device.Arguments(&all), stride, func(g *driver.Dim3) {
		// A block of several rows reads most rows of x once. Eight blocks a multiprocessor remain.
		if g.X*g.Y > convRows*8*c.Multiprocessors {
			g.Y = (g.Y + convRows - 1) / convRows
		}
		g.Z = len(s.Nodes)
	})
	l.Moves = func(b *plan.Batch) int { return weights + len(b.Tokens)*row + b.Seqs()*states }
	return []Launch{l}, err
}
