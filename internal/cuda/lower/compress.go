package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// compress implements [plan.Compress].
type compress struct{ ordinary }

type compressArgs struct {
	x, gate                   driver.DevicePtr
	xStride, gateStride       int32
	bias                      driver.DevicePtr
	rate, overlap, wide, cols int32
	rows                      rowsPoolArgs
	table                     tableArgs
	count                     driver.DevicePtr
	out                       device.Forms
}

func (compress) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr, x, gate, out := n.Attr.(plan.CompressAttr), c.forms(n.In[0]), c.forms(n.In[1]), c.forms(n.Out)
	a := compressArgs{
		x: x.F32, gate: gate.F32, xStride: x.Stride, gateStride: gate.Stride, bias: c.weight(n.Weight),
		rate: int32(attr.Rate), wide: x.Cols, cols: out.Cols, count: c.Step.counts + countTokens, out: out,
	}
	if attr.Overlap {
		a.overlap = 1
	}
	a.rows, a.table = c.rowsPool(n.State)
	rows, err := c.launch("compress", "rows", plan.Tokens, device.Arguments(&a), 256, func(sh *Shape) driver.Dim3 {
		return driver.Dim3{X: (int(2*x.Cols) + 255) / 256, Y: sh.Tokens}
	})
	if err != nil {
		return nil, err
	}
	compress, err := c.launch("compress", "compress", plan.Tokens, device.Arguments(&a), 256, elementGrid(plan.Tokens, out.Stride))
	kept, written, bias := 4*c.Layout.p.States[n.State].Width(), c.written(n.Out), c.weightBytes(n.Weight)
	rows.Moves = func(b *plan.Batch) int { return 2 * len(b.Tokens) * kept }
	compress.Moves = func(b *plan.Batch) int {
		return bias + len(b.Tokens)*(written+kept*attr.Span()/attr.Rate)
	}
	return []Launch{rows, compress}, err
}
