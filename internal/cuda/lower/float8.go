package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// float8 reports whether s multiplies rows of its input that are rounded to E4M3 with a scale for
// each row, and weights that are rounded likewise. Products that are not part of a layer, such as
// the logits, and those that choose experts, are not rounded: they cost little, and errors in them
// matter most.
func (l *Layout) float8(s *fuse.Stage) bool {
	if l.lim.Activations != tensor.F8_E4M3 || s.Node().Op != plan.Linear || s.Node().Layer == plan.NoLayer {
		return false
	}
	for _, n := range s.Nodes {
		if t := weights.TilingOf(n.Weight, l.lim); !t.Float8 || l.routes[n.Out] {
			return false
		}
	}
	return true
}

// Kernels with activations in E4M3, see kernels/float8.cuh.
var (
	plainFloat8 = []variant{
		{name: "wide_16", rows: 16, kind: ofWide}, {name: "wide_64", rows: 64, kind: ofWide}, {name: "wide_128", rows: 128, kind: ofWide},
	}
	gatedFloat8 = []variant{
		{name: "wide_gated_16", rows: 16, kind: ofWide}, {name: "wide_gated_64", rows: 64, kind: ofWide}, {name: "wide_gated_128", rows: 128, kind: ofWide},
	}
)

// quantized returns the sizes in bytes of the rows of an input in E4M3 and of their scales.
func quantized(p *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	if lim.Activations != tensor.F8_E4M3 {
		return nil
	}
	of := p.Shapes[n.In[0]]
	rows := chunked(lim.Size(of[0]))
	return []int{rows * rowStride(int(of[1])), 4 * rows}
}

type quantizeArgs struct {
	from, to, scales driver.DevicePtr
	stride           int32
	divided          float32
	count            driver.DevicePtr
}

// quantize returns the launch that rounds the input of s for its products, and sets a to what it
// writes.
func (c *Compiler) quantize(s *fuse.Stage, a *linearArgs) (Launch, error) {
	n := s.Node()
	in, scratch := c.forms(n.In[0]), c.scratch(n)
	q := quantizeArgs{from: in.F16, to: scratch[0], scales: scratch[1], stride: in.Stride, divided: divided(in, inF16), count: c.count(n.In[0])}
	a.h16, a.inStride, a.scales = q.to, in.Stride/2, q.scales
	for i, n := range s.Nodes {
		t := c.Weights.Matrices[n.Weight]
		a.p[i].powers = c.weight(n.Weight) + driver.DevicePtr(t.Fits())
	}
	rows := c.rows(n.In[0])
	l, err := c.launch("wide_quantize", "quantize", rows, device.Arguments(&q), 256, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: sh.Size(rows)} })
	l.Moves = func(b *plan.Batch) int { return b.Size(rows) * 3 * int(in.Cols) }
	return l, err
}
