package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// scan implements [plan.Scan].
type scan struct{ ordinary }

type scanArgs struct {
	x, dt, in, out                         driver.DevicePtr
	xStride, dtStride, inStride, outStride int32
	a, skip                                driver.DevicePtr
	cols, n                                int32
	state                                  SlotArgs
	starts, seqs                           driver.DevicePtr
	y                                      device.Forms
}

func (scan) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, dt, in, out, y := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.In[2]), c.forms(n.In[3]), c.forms(n.Out)
	a := scanArgs{
		x: x.F32, dt: dt.F32, in: in.F32, out: out.F32, xStride: x.Stride, dtStride: dt.Stride, inStride: in.Stride, outStride: out.Stride,
		a: c.weight(n.Weight), skip: c.weight(n.Bias), cols: x.Cols, n: in.Cols, state: c.Slots(n.State), starts: c.Step.starts, seqs: c.Step.counts + countSeqs, y: y,
	}
	name := "scan_16"
	if in.Cols > 16 {
		name = "scan_any"
	}
	ls, err := c.one("scan", name, plan.Tokens, device.Arguments(&a), 128, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (int(x.Cols) + 127) / 128, Y: c.seqs(sh)}
	})
	if err == nil {
		weights, row, state := c.weightBytes(n.Weight)+c.weightBytes(n.Bias), c.written(n.Out), 2*4*c.Layout.p.States[n.State].Size
		for _, v := range n.In {
			row += c.read(v, inFloats)
		}
		ls[0].Moves = func(b *plan.Batch) int { return weights + len(b.Tokens)*row + b.Seqs()*state }
	}
	return ls, err
}
