package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// mapped implements [plan.Map] for values that no product's stage maps.
type mapped struct{ ordinary }

type mapArgs struct {
	x                        driver.DevicePtr
	stride, cols, which, act int32
	by                       float32
	_                        int32
	count                    driver.DevicePtr
	out                      device.Forms
}

func (mapped) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, out, attr := c.forms(n.In[0]), c.forms(n.Out), n.Attr.(plan.MapAttr)
	a := mapArgs{x: x.F32, stride: x.Stride, cols: x.Cols, which: int32(attr.Func), act: int32(attr.Act), by: float32(attr.By), count: c.count(n.Out), out: out}
	return c.one("elementwise", "map", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
