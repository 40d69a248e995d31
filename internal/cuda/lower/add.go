package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
)

// add implements [plan.Add] for values that no product's stage adds to.
type add struct{ ordinary }

type addArgs struct {
	x, y                      driver.DevicePtr
	xStride, yStride, cols, _ int32
	count                     driver.DevicePtr
	out                       device.Forms
}

func (add) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, y, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := addArgs{x: x.F32, y: y.F32, xStride: x.Stride, yStride: y.Stride, cols: x.Cols, count: c.count(n.Out), out: out}
	return c.one("elementwise", "add", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
