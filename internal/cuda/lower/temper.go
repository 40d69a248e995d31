package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// temper implements [plan.Temper].
type temper struct{ ordinary }

type temperArgs struct {
	x, positions               driver.DevicePtr
	by                         float64
	every, shift, stride, cols int32
	count                      driver.DevicePtr
	out                        device.Forms
}

func (temper) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, out, attr := c.forms(n.In[0]), c.forms(n.Out), n.Attr.(plan.TemperAttr)
	a := temperArgs{
		x: x.F32, positions: c.Step.positions, by: attr.By, every: int32(attr.Every), shift: int32(attr.Shift), stride: x.Stride, cols: x.Cols,
		count: c.count(n.Out), out: out,
	}
	return c.one("rowwise", "temper", plan.Tokens, device.Arguments(&a), 256, elementGrid(plan.Tokens, out.Stride))
}
