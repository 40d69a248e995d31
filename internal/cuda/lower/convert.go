package lower

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

type convertArgs struct {
	x            driver.DevicePtr
	stride, cols int32
	at, count    driver.DevicePtr
	out          device.Forms
}

// convert writes the forms of a value that its stage does not write.
func (c *Compiler) convert(v plan.Value) ([]Launch, error) {
	if !slices.Contains(c.Layout.wanted[v][inFloats+1:], true) {
		return nil, nil
	}
	out := c.forms(v)
	a := convertArgs{x: out.F32, stride: out.Stride, cols: out.Cols, count: c.count(v), out: out}
	a.out.F32 = 0
	ls, err := c.one("elementwise", "convert", c.rows(v), device.Arguments(&a), 256, elementGrid(c.rows(v), out.Stride))
	if err == nil {
		ls[0].Moves = func(b *plan.Batch) int { return b.Size(c.rows(v)) * c.written(v) }
	}
	return ls, err
}

type finiteArgs struct {
	x                    driver.DevicePtr
	stride, cols         int32
	count, sequence, bad driver.DevicePtr
}

// Finite checks the residual stream of every token, for steps with that [plan.Batch.Head]. A
// non-finite value in any layer persists to the end of the stream.
func (c *Compiler) Finite(head bool) ([]Launch, error) {
	residual, _, _ := c.Layout.p.Outputs(head)
	if residual < 0 {
		return nil, nil
	}
	in := c.forms(residual)
	a := finiteArgs{x: in.F32, stride: in.Stride, cols: in.Cols, count: c.count(residual), sequence: c.Step.sequence, bad: c.Step.bad}
	ls, err := c.one("elementwise", "finite", plan.Tokens, device.Arguments(&a), 256, func(sh *Shape) driver.Dim3 { return driver.Dim3{X: sh.Tokens} })
	if err == nil {
		ls[0].where, ls[0].Moves = "look at the residual", func(b *plan.Batch) int { return len(b.Tokens) * 4 * int(in.Cols) }
	}
	return ls, err
}
