package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// glu implements [plan.GLU] for values that no product's stage gates.
type glu struct{ ordinary }

type gateArgs struct {
	gate, up                         driver.DevicePtr
	gateStride, upStride, cols, each int32
	unit                             unit
	late                             int32
	count                            driver.DevicePtr
	out                              device.Forms
}

// late reports whether a unit has a limit of its activation, which units of products lack.
func late(a plan.GLUAttr) bool { return a.Late && a.Limit > 0 }

// setUnit sets the unit of a.
func (a *gateArgs) setUnit(attr plan.GLUAttr) {
	if a.unit = unitOf(attr); late(attr) {
		a.late = 1
	}
}

func (glu) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	g, u, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := gateArgs{gate: g.F32, up: u.F32, gateStride: g.Stride, upStride: u.Stride, cols: u.Cols, each: u.Cols / g.Cols, count: c.count(n.Out), out: out}
	a.setUnit(n.Attr.(plan.GLUAttr))
	return c.one("elementwise", "gate", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
