package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// compress joins the rows of consecutive tokens to one. All of a row's inputs are read from the
// state, so the bits do not depend on which step they were written in.
type compress struct{ ordinary }

// A compression is the inputs of one row: rows of x and gate, with their biases.
type compression struct {
	x, gate, bias [][]float32
}

// inputs sets c to the inputs of the row of token t, which is the last of its window. bias is
// [Rate, cols].
func (c *compression) inputs(e *executable, n *plan.Node, pool *kvPool, bias []float32, t int) {
	a := n.Attr.(plan.CompressAttr)
	past, pos, cols := e.past(pool, e.seq[t]), int(e.batch.Positions[t]), pool.row/2
	c.x, c.gate, c.bias = c.x[:0], c.gate[:0], c.bias[:0]
	d := int(e.p.Shapes[n.Out][1])
	for p := max(0, pos+1-a.Span()); p <= pos; p++ {
		from := 0
		if a.Overlap && p > pos-a.Rate {
			from = d
		}
		numbers, _, _ := past.slot(p, 0).value()
		row := words[float32](numbers)
		c.x = append(c.x, row[from:from+d])
		c.gate = append(c.gate, row[cols+from:][:d])
		c.bias = append(c.bias, bias[p%a.Rate*cols+from:][:d])
	}
}

// store stores x and gate of the step's tokens.
func (compress) store(e *executable, n *plan.Node, pool *kvPool) {
	e.reach(pool.pagePool)
	for t, s := range e.seq {
		past := e.past(pool, s)
		numbers, _, _ := past.slot(int(e.batch.Positions[t]), 0).value()
		row, x := words[float32](numbers), e.row(n.In[0], t)
		copy(row, x)
		copy(row[len(x):], e.row(n.In[1], t))
	}
}

// closes reports whether token t is the last of its window.
func (compress) closes(e *executable, n *plan.Node, t int) bool {
	return (int(e.batch.Positions[t])+1)%n.Attr.(plan.CompressAttr).Rate == 0
}

func (o compress) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	bias, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	a, pool, d := n.Attr.(plan.CompressAttr), e.kv(n.State), int(e.p.Shapes[n.Out][1])
	type desk struct {
		in         compression
		top, total []float32
	}
	desks := make([]desk, len(e.desks))
	for i := range desks {
		rows := func() [][]float32 { return make([][]float32, 0, a.Span()) }
		desks[i] = desk{compression{rows(), rows(), rows()}, make([]float32, d), make([]float32, d)}
	}
	return []kernel{
		one(func() { o.store(e, n, pool) }),
		{size: func() int { return len(e.ids) }, run: func(worker, lo, hi int) {
			k := &desks[worker]
			for t := lo; t < hi; t++ {
				y := e.row(n.Out, t)
				if clear(y); o.closes(e, n, t) {
					k.in.inputs(e, n, pool, bias, t)
					k.in.mean(y, k.top, k.total)
				}
				e.wrote(n.Out, t, 0, d)
			}
		}},
	}, nil
}

// mean writes the mean of c.x, weighted by the softmax of c.gate + c.bias.
func (c *compression) mean(y, top, total []float32) {
	for i := range top {
		top[i], total[i] = float32(math.Inf(-1)), 0
	}
	for r, gate := range c.gate {
		for i, b := range c.bias[r] {
			top[i] = max(top[i], gate[i]+b)
		}
	}
	for r, gate := range c.gate {
		bias, x := c.bias[r], c.x[r]
		for i, b := range bias {
			w := float32(math.Exp(float64(gate[i] + b - top[i])))
			total[i] += w
			y[i] += w * x[i]
		}
	}
	for i, v := range total {
		y[i] /= v
	}
}

func (o compress) reference(e *executable, n *plan.Node) ([]kernel, error) {
	bias, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	pool, a := e.kv(n.State), n.Attr.(plan.CompressAttr)
	return []kernel{one(func() { o.store(e, n, pool) }), {size: func() int { return len(e.seq) }, run: func(_, lo, hi int) {
		var in compression
		for t := lo; t < hi; t++ {
			y, bound := e.row(n.Out, t), e.bound(n.Out, t)
			clear(y)
			clear(bound)
			if !o.closes(e, n, t) {
				continue
			}
			in.inputs(e, n, pool, bias, t)
			for i := range y {
				top, sum, total := math.Inf(-1), 0.0, 0.0
				logits := make([]float64, len(in.gate))
				for r, gate := range in.gate {
					logits[r] = float64(gate[i]) + float64(in.bias[r][i])
					top = max(top, logits[r])
				}
				for r, z := range logits {
					w := math.Exp(z - top)
					total += w
					sum += w * float64(in.x[r][i])
				}
				y[i] = float32(sum / total)
				if bound == nil {
					continue
				}
				off := 0.0
				for r, z := range logits {
					// Rows of this step may have bounds; those of earlier steps are equal in both runs.
					var dx, dgate float64
					at0 := t - len(logits) + 1 + r
					if at0 >= int(e.batch.Start[e.seq[t]]) {
						col := i
						if a.Overlap && r >= len(logits)-a.Rate {
							col += len(y)
						}
						dx, dgate = at(e.bound(n.In[0], at0), col), at(e.bound(n.In[1], at0), col)
					}
					w, x := math.Exp(z-top)/total, float64(in.x[r][i])
					by := math.Expm1(min(2*dgate+roundings*(1+math.Abs(z)+top-z), 10))
					off += w * (by*(math.Abs(x-float64(y[i]))+dx) + roundings*math.Abs(x) + dx)
				}
				bound[i] = float32(off)
			}
			e.wrote(n.Out, t, 0, len(y))
		}
	}}}, nil
}

func (compress) moved(e *executable, n *plan.Node) int {
	s := e.p.States[n.State]
	return 4 * s.Width() * (e.batch.Attended(e.p.Groups[s.Group]) + len(e.batch.Tokens))
}
