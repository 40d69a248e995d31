package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// rescale implements [plan.Rescale].
type rescale struct{ ordinary }

type rescaleArgs struct {
	x, like                      driver.DevicePtr
	eps                          float64
	xStride, likeStride, cols, _ int32
	count                        driver.DevicePtr
	out                          device.Forms
}

func (rescale) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	x, like := c.forms(n.In[0]), c.forms(n.In[1])
	a := rescaleArgs{
		x: x.F32, like: like.F32, eps: n.Attr.(plan.RescaleAttr).Eps, xStride: x.Stride, likeStride: like.Stride, cols: x.Cols,
		count: c.count(n.Out), out: c.forms(n.Out),
	}
	return c.one("rowwise", "rescale", c.rows(n.Out), device.Arguments(&a), 256, rowGrid(c.rows(n.Out)))
}

// rowGrid returns the grid for kernels in which a block processes a row.
func rowGrid(rows plan.Dim) func(sh *Shape) driver.Dim3 {
	return func(sh *Shape) driver.Dim3 { return driver.Dim3{X: sh.Size(rows)} }
}
