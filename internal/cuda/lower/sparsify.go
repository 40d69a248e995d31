package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// sparsify implements [plan.Sparsify].
type sparsify struct{ ordinary }

type sparsifyArgs struct {
	x            driver.DevicePtr
	by           float64
	stride, cols int32
	count        driver.DevicePtr
	out          device.Forms
}

func (sparsify) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x := c.forms(n.In[0])
	a := sparsifyArgs{x: x.F32, by: n.Attr.(plan.SparsifyAttr).By, stride: x.Stride, cols: x.Cols, count: c.count(n.Out), out: c.forms(n.Out)}
	return c.one("rowwise", "sparsify", c.rows(n.Out), device.Arguments(&a), 256, rowGrid(c.rows(n.Out)))
}
