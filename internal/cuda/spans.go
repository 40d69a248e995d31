package cuda

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// What launches read and write, for [plan.Span]: weights as they lie, in tiles; values in
// the forms that are read and written.

// rowBytes is the size of a row of so many columns in one form.
func (c *compiler) rowBytes(k kind, cols int) int {
	switch k {
	case inBytes:
		return cols + 8*((cols+31)/32)
	case inBF16, inF16:
		return 2 * cols
	default:
		return 4 * cols
	}
}

// read is the size of a row of v where it is read in one form.
func (c *compiler) read(v plan.Value, k kind) int { return c.rowBytes(k, int(c.l.p.Shapes[v][1])) }

// written is the size of a row of v in all forms that are written.
func (c *compiler) written(v plan.Value) int {
	n := 0
	for k, wanted := range c.l.wanted[v] {
		if wanted {
			n += c.read(v, kind(k))
		}
	}
	return n
}

// weightBytes is the size of a weight where it lies; of none, 0.
func (c *compiler) weightBytes(w *tensor.Tensor) int {
	if w == nil {
		return 0
	}
	if t, ok := c.weights.matrices[w]; ok {
		return t.size()
	}
	return 4 * w.Elems()
}

// moved is what a stage of one launch reads and writes.
func (c *compiler) moved(s *stage) func(b *plan.Batch) int {
	n := s.nodes[0]
	weights, tokens, rows := 0, 0, 0 // bytes: of all, of each token and of each row
	value := func(d plan.Dim, bytes int) {
		if d == plan.Rows {
			rows += bytes
		} else {
			tokens += bytes
		}
	}
	for _, m := range s.all() {
		switch m.Op {
		case plan.Embed, plan.Position:
			t := c.weights.matrices[m.Weight]
			tokens += t.rowBytes()
		default:
			weights += c.weightBytes(m.Weight) + c.weightBytes(m.Bias)
		}
	}
	out := c.rows(n.Out)
	for _, v := range s.io().Out {
		value(out, c.written(v))
	}
	for i, v := range s.inputs() {
		d, k := c.rows(v), inFloats
		switch {
		case n.Op == plan.Linear && i == 0:
			k = arithmetic(n, c.l.lim)
		case s.pick != nil || n.Op == plan.Pick && !picksMean(n):
			d = plan.Rows
		}
		value(d, c.read(v, k))
	}
	alone := 0 // bytes more, of a single row
	if norm := c.l.norm(s); norm != nil {
		m := norm.nodes[0]
		alone = c.weightBytes(m.Weight) + c.read(m.Out, inFloats) - c.read(m.Out, arithmetic(n, c.l.lim))
	}
	return func(b *plan.Batch) int {
		bytes := weights + tokens*len(b.Tokens) + rows*len(b.Rows)
		if b.Size(out) == 1 {
			bytes += alone
		}
		return bytes
	}
}

// attentionMoves are what the launches of attention read and write: those that store and
// attend one after the other, and the one that does both.
func (c *compiler) attentionMoves(s *stage) (store, attend, both func(b *plan.Batch) int) {
	n := s.nodes[0]
	a, kept := n.Attr.(plan.AttentionAttr), c.pools[n.State].bytes/c.l.lim.PageTokens // of a position
	q, out := c.read(s.q.in, inFloats), c.written(n.Out)
	keys, turned := c.read(s.k.in, inFloats)+c.read(n.In[2], inFloats), 0
	if s.q.rope != nil {
		turned = 2 * q
	}
	store = func(b *plan.Batch) int { return len(b.Tokens) * (turned + keys + kept) }
	attend = func(b *plan.Batch) int { return len(b.Tokens)*(q+out) + b.Attended(a.Window)*kept }
	both = func(b *plan.Batch) int { return len(b.Tokens)*(q+keys+kept+out) + b.Attended(a.Window)*kept }
	return store, attend, both
}

// rowsMove is so many bytes for each slot.
func (m *mixture) rowsMove(bytes int) func(b *plan.Batch) int {
	return func(b *plan.Batch) int { return b.Size(m.rows) * m.attr.Route.Used * bytes }
}

// moves are what a product of experts reads and writes: the weights of as many experts as
// the tokens can have chosen, since which they have is known on the device alone.
func (m *mixture) moves(w *tensor.Tensor, cols int32, gated bool) func(b *plan.Batch) int {
	weights, out := m.weightBytes(w), 4*w.Rows()
	if gated {
		weights *= 2
		out = m.rowBytes(arithmeticOf(m.attr.Down[0], m.l.lim), w.Rows())
	}
	rows := m.rowsMove(m.rowBytes(arithmeticOf(w, m.l.lim), int(cols)) + out)
	return func(b *plan.Batch) int {
		return min(b.Size(m.rows)*m.attr.Route.Used, len(m.attr.Gate))*weights + rows(b)
	}
}

// combineMoves is what adding up reads and writes.
func (m *mixture) combineMoves(s *stage) func(b *plan.Batch) int {
	out := s.out()
	row := m.written(out)
	if s.add != nil {
		row += m.read(s.residual(), inFloats)
	}
	slots := m.rowsMove(m.read(out, inFloats))
	return func(b *plan.Batch) int { return b.Size(m.rows)*row + slots(b) }
}
