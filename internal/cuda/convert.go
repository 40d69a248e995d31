package cuda

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

type convertArgs struct {
	x            driver.DevicePtr
	stride, cols int32
	at, count    driver.DevicePtr
	out          forms
}

// convert writes the forms of a value that its stage has not written.
func (c *compiler) convert(v plan.Value) ([]launch, error) {
	if !slices.Contains(c.l.wanted[v][inBytes:], true) {
		return nil, nil
	}
	out := c.forms(v)
	a := convertArgs{x: out.f32, stride: out.stride, cols: out.cols, count: c.count(v), out: out}
	a.out.f32 = 0
	ls, err := c.one("elementwise", "convert", c.rows(v), arguments(&a), 256, elementGrid(c.rows(v), out.stride))
	if err == nil {
		ls[0].moves = func(b *plan.Batch) int { return b.Size(c.rows(v)) * c.written(v) }
	}
	return ls, err
}

type finiteArgs struct {
	x                    driver.DevicePtr
	stride, cols         int32
	count, sequence, bad driver.DevicePtr
}

// finite looks at the residual stream of every token: what goes wrong in a layer stays
// there.
func (c *compiler) finite() ([]launch, error) {
	if c.l.p.Residual < 0 {
		return nil, nil
	}
	in := c.forms(c.l.p.Residual)
	a := finiteArgs{x: in.f32, stride: in.stride, cols: in.cols, count: c.count(c.l.p.Residual), sequence: c.step.sequence, bad: c.step.bad}
	ls, err := c.one("elementwise", "finite", plan.Tokens, arguments(&a), 256, func(sh *shape) driver.Dim3 { return driver.Dim3{X: sh.tokens} })
	if err == nil {
		ls[0].where, ls[0].moves = "look at the residual", func(b *plan.Batch) int { return len(b.Tokens) * 4 * int(in.cols) }
	}
	return ls, err
}

// elementGrid is that of the kernels for which a warp does 32 columns of a row.
func elementGrid(rows plan.Dim, stride int32) func(sh *shape) driver.Dim3 {
	return func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: (int(stride)/32 + 7) / 8, Y: min(sh.size(rows), 65535)}
	}
}
