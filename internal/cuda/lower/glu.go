package lower

import (
	"errors"

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
	_                                int32
	count                            driver.DevicePtr
	out                              device.Forms
}

func (glu) check(n *plan.Node) error { return checkUnit(n.Attr.(plan.GLUAttr)) }

// checkUnit refuses what kernels do not compute of gated units.
func checkUnit(a plan.GLUAttr) error {
	if a.Late {
		return errors.New("no kernel for limits of activations")
	}
	return nil
}

func (glu) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	g, u, out := c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := gateArgs{gate: g.F32, up: u.F32, gateStride: g.Stride, upStride: u.Stride, cols: u.Cols, each: u.Cols / g.Cols, unit: unitOf(n.Attr.(plan.GLUAttr)), count: c.count(n.Out), out: out}
	return c.one("elementwise", "gate", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
