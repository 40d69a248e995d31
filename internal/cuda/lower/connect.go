package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// connect implements [plan.Connect].
type connect struct{ ordinary }

type connectArgs struct {
	x               driver.DevicePtr
	stride, streams int32
	scale, base     driver.DevicePtr
	eps             float64
	iterations      int32
	cols            int32
	count           driver.DevicePtr
	out             device.Forms
}

func (connect) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr, x, out, rows := n.Attr.(plan.ConnectAttr), c.forms(n.In[0]), c.forms(n.Out), c.rows(n.Out)
	a := connectArgs{
		x: x.F32, stride: x.Stride, streams: int32(attr.Streams), scale: c.weight(n.Weight), base: c.weight(n.Bias),
		eps: attr.Eps, cols: out.Cols, count: c.count(n.Out), out: out,
	}
	shared := 0
	if !attr.Last {
		a.iterations, shared = int32(attr.Iterations), 8*attr.Streams*attr.Streams
	}
	l, err := c.launchShared("connect", "connect", rows, device.Arguments(&a), 64, shared, 0, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: sh.Size(rows)} })
	return []Launch{l}, err
}
