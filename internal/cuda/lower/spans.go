package lower

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The bytes that launches read and write, for [plan.Span]. Weights count in the tiled layout,
// values in the forms that are read and written.

// rowBytes returns the size in bytes of a row of cols columns in form k.
func (c *Compiler) rowBytes(k kind, cols int) int {
	switch k {
	case inBF16, inF16:
		return 2 * cols
	default:
		return 4 * cols
	}
}

// read returns the size of a row of v in the form in which it is read, in bytes.
func (c *Compiler) read(v plan.Value, k kind) int { return c.rowBytes(k, int(c.Layout.p.Shapes[v][1])) }

// written returns the size of a row of v in all forms that are written, in bytes.
func (c *Compiler) written(v plan.Value) int {
	n := 0
	for k, wanted := range c.Layout.wanted[v] {
		if wanted {
			n += c.read(v, kind(k))
		}
	}
	return n
}

// weightBytes returns the size of a weight on the device in bytes, or 0 if w is nil.
func (c *Compiler) weightBytes(w *tensor.Tensor) int {
	if w == nil {
		return 0
	}
	if t, ok := c.Weights.Matrices[w]; ok {
		return t.Size()
	}
	return 4 * w.Elems()
}

// moved returns the bytes that a stage of one launch reads and writes.
func (c *Compiler) moved(s *fuse.Stage) func(b *plan.Batch) int {
	n := s.Node()
	tokens, rows := 0, 0 // bytes of each token and of each row
	var weights []plan.Weight
	value := func(d plan.Dim, bytes int) {
		if d == plan.Rows {
			rows += bytes
		} else {
			tokens += bytes
		}
	}
	for _, m := range s.All() {
		for _, w := range m.Weights() {
			if w.Role == plan.Table {
				t := c.Weights.Matrices[w.Tensor]
				tokens += t.RowBytes()
			} else {
				weights = append(weights, w)
			}
		}
	}
	out := c.rows(n.Out)
	for _, v := range s.IO().Out {
		value(out, c.written(v))
	}
	for i, v := range s.Inputs() {
		d := c.rows(v)
		if s.Pick != nil {
			d = plan.Rows
		}
		value(d, c.read(v, c.Layout.reads(s, i)[0]))
	}
	alone := 0 // more bytes if there is a single row
	if norm := c.Layout.norm(s); norm != nil {
		m := norm.Node()
		alone = c.weightBytes(m.Weight) + c.read(m.Out, inFloats) - c.read(m.Out, c.Layout.reads(s, 0)[0])
	}
	return func(b *plan.Batch) int {
		bytes, size := tokens*len(b.Tokens)+rows*len(b.Rows), b.Size(out)
		for _, w := range weights {
			bytes += c.weightBytes(w.Tensor) * w.Read(size) / w.Of
		}
		if size == 1 {
			bytes += alone
		}
		return bytes
	}
}
