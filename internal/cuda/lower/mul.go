package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
)

// mul implements [plan.Mul].
type mul struct{ ordinary }

type mulArgs struct {
	x, y                           driver.DevicePtr
	xStride, yStride, single, cols int32
	count                          driver.DevicePtr
	out                            device.Forms
}

func (mul) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, out := c.forms(n.In[0]), c.forms(n.Out)
	a := mulArgs{x: x.F32, y: c.weight(n.Weight), xStride: x.Stride, cols: out.Cols, count: c.count(n.Out), out: out}
	if n.Weight == nil {
		y := c.forms(n.In[1])
		a.y, a.yStride = y.F32, y.Stride
	}
	if x.Cols == 1 {
		a.single = 1
	}
	return c.one("rowwise", "mul", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
