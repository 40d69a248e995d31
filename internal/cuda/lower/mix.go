package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// mix implements [plan.Mix].
type mix struct{ ordinary }

// mostMixed is the maximum number of values of a sum.
const mostMixed = 8

func (mix) check(n *plan.Node) error {
	if values := len(n.In) - 1; values > mostMixed {
		return fmt.Errorf("no kernel for a sum of %d values, of which %d is the most", values, mostMixed)
	}
	return nil
}

type mixArgs struct {
	x                         [mostMixed]driver.DevicePtr
	by                        driver.DevicePtr
	n, stride, byStride, cols int32
	count                     driver.DevicePtr
	out                       device.Forms
}

func (mix) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	by, out := c.forms(n.In[0]), c.forms(n.Out)
	first := n.Attr.(plan.MixAttr).First
	a := mixArgs{by: by.F32 + driver.DevicePtr(4*first), n: int32(len(n.In) - 1), stride: out.Stride, byStride: by.Stride, cols: out.Cols, count: c.count(n.Out), out: out}
	for i, v := range n.In[1:] {
		a.x[i] = c.forms(v).F32
	}
	return c.one("rowwise", "mix", c.rows(n.Out), device.Arguments(&a), 256, elementGrid(c.rows(n.Out), out.Stride))
}
