package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// glu is [plan.GLU] of values that no product's stage gates.
type glu struct{ ordinary }

type gateArgs struct {
	gate, up                             driver.DevicePtr
	gateStride, upStride, cols, gateCols int32
	unit                                 unit
	_                                    int32
	count                                driver.DevicePtr
	out                                  forms
}

func (glu) launches(c *compiler, s *fuse.Stage) ([]launch, error) {
	n := s.Node()
	g, u, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := gateArgs{gate: g.f32, up: u.f32, gateStride: g.stride, upStride: u.stride, cols: u.cols, gateCols: g.cols, unit: unitOf(n.Attr.(plan.GLUAttr)), count: c.count(n.Out), out: out}
	return c.one("elementwise", "gate", c.rows(n.Out), arguments(&a), 256, elementGrid(c.rows(n.Out), out.stride))
}
