package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
)

// concat implements [plan.Concat].
type concat struct{ ordinary }

type concatArgs struct {
	x, y                          driver.DevicePtr
	xStride, yStride, first, cols int32
	count                         driver.DevicePtr
	out                           device.Forms
}

func (concat) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, y, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := concatArgs{x: x.F32, y: y.F32, xStride: x.Stride, yStride: y.Stride, first: x.Cols, cols: out.Cols, count: c.count(n.Out), out: out}
	return c.one("rowwise", "concat", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
