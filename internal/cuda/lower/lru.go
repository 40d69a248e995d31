package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// lru implements [plan.LRU].
type lru struct{ ordinary }

type lruArgs struct {
	x, input, decay                         driver.DevicePtr
	xStride, inputStride, decayStride, cols int32
	rate, inputBias, decayBias              driver.DevicePtr
	state                                   SlotArgs
	positions, starts, seqs                 driver.DevicePtr
	out                                     device.Forms
}

func (lru) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr, x, input, decay := n.Attr.(plan.LRUAttr), c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.In[2])
	a := lruArgs{
		x: x.F32, input: input.F32, decay: decay.F32, xStride: x.Stride, inputStride: input.Stride, decayStride: decay.Stride, cols: x.Cols,
		rate: c.weight(attr.Rate), inputBias: c.weight(attr.InputBias), decayBias: c.weight(attr.DecayBias),
		state: c.Slots(n.State), positions: c.Step.positions, starts: c.Step.starts, seqs: c.Step.counts + countSeqs, out: c.forms(n.Out),
	}
	ls, err := c.one("lru", "lru", plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (int(x.Cols) + 127) / 128, Y: c.seqs(sh)}
	})
	if err == nil {
		weights, row, state := 3*c.weightBytes(attr.Rate), 3*c.read(n.In[0], inFloats)+c.written(n.Out), 2*4*c.Layout.p.States[n.State].Size
		ls[0].Moves = func(b *plan.Batch) int { return weights + len(b.Tokens)*row + b.Seqs()*state }
	}
	return ls, err
}
