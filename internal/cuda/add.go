package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
)

// add is [plan.Add] of values to which no product's stage adds.
type add struct{ ordinary }

type addArgs struct {
	x, y                      driver.DevicePtr
	xStride, yStride, cols, _ int32
	count                     driver.DevicePtr
	out                       forms
}

func (add) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	n := s.Node()
	x, y, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := addArgs{x: x.f32, y: y.f32, xStride: x.stride, yStride: y.stride, cols: x.cols, count: c.count(n.Out), out: out}
	return c.one("elementwise", "add", c.rows(n.Out), arguments(&a), 256, elementGrid(c.rows(n.Out), out.stride))
}
