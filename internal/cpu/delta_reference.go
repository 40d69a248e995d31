package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// deltaGate returns the g of an input.
func deltaGate(a *plan.DeltaAttr, rate, x, bias float32) float64 {
	r, u := float64(rate), float64(x)+float64(bias)
	if a.Floor != 0 {
		return a.Floor / (1 + math.Exp(r*u))
	}
	return r * (max(u, 0) + math.Log1p(math.Exp(-math.Abs(u))))
}

// A deltaChunk is what a head of the reference knows of a chunk: the matrix at its beginning, and
// its rows so far.
type deltaChunk struct {
	matrix  []float64 // [KeyDim, ValueDim]
	k, g, u [][]float32
}

func (delta) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.DeltaAttr)
	rate, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	pool := e.kv(a.Rows)
	return []kernel{
		one(func() { e.reach(pool.pagePool) }),
		{size: func() int { return len(e.ids) * a.KeyHeads }, run: func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				t, g := i/a.KeyHeads, i%a.KeyHeads
				past := e.past(pool, e.seq[t])
				keys := keysOf(past.slot(int(e.batch.Positions[t]), g))
				for d, x := range unitLength(e.row(n.In[1], t)[g*a.KeyDim:][:a.KeyDim]) {
					keys[d*pool.pageTokens] = float32(x)
				}
			}
		}},
		{size: func() int { return e.batch.Seqs() * a.Heads }, run: func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				deltaReference(e, n, &a, pool, rate, bias, i/a.Heads, i%a.Heads)
			}
		}},
	}, nil
}

// unitLength returns x divided by its length.
func unitLength(x []float32) []float64 {
	sum, y := deltaEps, make([]float64, len(x))
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	for i, v := range x {
		y[i] = float64(v) / math.Sqrt(sum)
	}
	return y
}

// deltaReference computes head h of sequence s.
func deltaReference(e *executable, n *plan.Node, a *plan.DeltaAttr, pool *kvPool, rate, bias []float32, s, h int) {
	b, past, size := e.batch, e.past(pool, int32(s)), a.KeyDim*a.ValueDim
	key, which := a.Key(h)
	in, out := e.slots(n.State, int32(s))
	c := deltaChunk{}
	for _, x := range in[h*size:][:size] {
		c.matrix = append(c.matrix, float64(x))
	}
	first, end := int(b.Positions[b.Start[s]]), int(b.Positions[b.Start[s+1]-1])+1
	for pos := first / plan.RecurrentChunk * plan.RecurrentChunk; pos < end; pos++ {
		at := past.slot(pos, key)
		keys, values := keysOf(at), valuesOf(at)[which*a.ValueDim:][:a.ValueDim]
		k, stored := make([]float32, a.KeyDim), keys[(a.KeyDim+which*a.Gates())*pool.pageTokens:]
		for d := range k {
			k[d] = keys[d*pool.pageTokens]
		}
		g := make([]float32, a.Gates())
		if pos < first {
			for i := range g {
				g[i] = -stored[i*pool.pageTokens]
			}
			c.k, c.g, c.u = append(c.k, k), append(c.g, g), append(c.u, values)
			continue
		}
		t := int(b.Start[s]) + pos - first
		for i := range g {
			x := h*a.Gates() + i
			g[i] = float32(deltaGate(a, rate[h], e.row(n.In[4], t)[x], bias[x]))
			if len(c.g) > 0 {
				g[i] += c.g[len(c.g)-1][i]
			}
			stored[i*pool.pageTokens] = -g[i]
		}
		c.k, c.g = append(c.k, k), append(c.g, g)
		sum, _, _ := c.sum(a, widened(k), len(c.u))
		beta := deltaBeta(a, e.row(n.In[3], t)[h])
		for i, v := range e.row(n.In[2], t)[h*a.ValueDim:][:a.ValueDim] {
			values[i] = float32(beta * (float64(v) - sum[i]))
		}
		c.u = append(c.u, values)
		q := unitLength(e.row(n.In[0], t)[key*a.KeyDim:][:a.KeyDim])
		for i := range q {
			q[i] /= math.Sqrt(float64(a.KeyDim))
		}
		sum, squares, total := c.sum(a, q, len(c.u))
		for i := range sum {
			e.row(n.Out, t)[h*a.ValueDim+i] = float32(sum[i])
		}
		if to := e.bound(n.Out, t); to != nil {
			deltaBound(to[h*a.ValueDim:][:a.ValueDim], squares, total, deltaDoubts(e, n, a, t, h, key))
		}
		e.wrote(n.Out, t, h*a.ValueDim, (h+1)*a.ValueDim)
		if (pos+1)%plan.RecurrentChunk == 0 {
			c.advance(a)
			if pos+1 == end/plan.RecurrentChunk*plan.RecurrentChunk {
				for i, x := range c.matrix {
					out[h*size+i] = float32(x)
				}
			}
		}
	}
}

func widened(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

// decayed returns exp(G_i-G_j) of channel d, for the last row i.
func (c *deltaChunk) decayed(j, d int) float64 {
	last := c.g[len(c.g)-1]
	return math.Exp(float64(last[d%len(last)]) - float64(c.g[j][d%len(last)]))
}

// sum returns Sᵀ(exp(G) x) and the sum over the first n rows j of (x · exp(G-G_j) k_j) u_j, where G
// is that of the last row, and the sums of the squares and of the sizes of their terms.
func (c *deltaChunk) sum(a *plan.DeltaAttr, x []float64, n int) (sum, squares, sizes []float64) {
	sum, squares, sizes = make([]float64, a.ValueDim), make([]float64, a.ValueDim), make([]float64, a.ValueDim)
	add := func(i int, term float64) {
		sum[i] += term
		squares[i] += term * term
		sizes[i] += math.Abs(term)
	}
	last := c.g[len(c.g)-1]
	for d, v := range x {
		v *= math.Exp(float64(last[d%len(last)]))
		for i, m := range c.matrix[d*a.ValueDim:][:a.ValueDim] {
			add(i, v*m)
		}
	}
	for j := range n {
		weight := 0.0
		for d, v := range x {
			weight += v * c.decayed(j, d) * float64(c.k[j][d])
		}
		for i, u := range c.u[j] {
			add(i, weight*float64(u))
		}
	}
	return sum, squares, sizes
}

// advance begins the next chunk.
func (c *deltaChunk) advance(a *plan.DeltaAttr) {
	last := c.g[len(c.g)-1]
	for d := range a.KeyDim {
		row := c.matrix[d*a.ValueDim:][:a.ValueDim]
		for i := range row {
			row[i] *= math.Exp(float64(last[d%len(last)]))
		}
		for j, u := range c.u {
			weight := c.decayed(j, d) * float64(c.k[j][d])
			for i := range row {
				row[i] += weight * float64(u[i])
			}
		}
		for i, x := range row {
			row[i] = float64(float32(x)) // as it is stored
		}
	}
	c.k, c.g, c.u = nil, nil, nil
}

const (
	// deltaDoubt bounds the error of an element as a fraction of the root of its terms' squares.
	// Errors of earlier rows come with the terms that they are in.
	deltaDoubt = 2e-4
	// rowDoubt bounds it as a fraction of the row's: u may be the small difference of large values.
	rowDoubt = 5e-5
)

// deltaDoubts bounds the relative error of the terms of head h of token t that the bounds of its
// own inputs allow.
func deltaDoubts(e *executable, n *plan.Node, a *plan.DeltaAttr, t, h, key int) float64 {
	off := 0.0
	for i, in := range []struct{ lo, size int }{{key * a.KeyDim, a.KeyDim}, {key * a.KeyDim, a.KeyDim}, {h * a.ValueDim, a.ValueDim}} {
		bound := e.bound(n.In[i], t)
		if bound == nil {
			continue
		}
		var doubt, size float64
		for c, x := range e.row(n.In[i], t)[in.lo:][:in.size] {
			doubt += square(float64(bound[in.lo+c]))
			size += square(float64(x))
		}
		off += 2 * math.Sqrt(doubt/(size+deltaEps))
	}
	off += at(e.bound(n.In[3], t), h)
	for c := h * a.Gates(); c < (h+1)*a.Gates(); c++ {
		off = max(off, off+at(e.bound(n.In[4], t), c))
	}
	return off
}

// deltaBound writes the bounds of a row of a head.
func deltaBound(to []float32, squares, sizes []float64, off float64) {
	var row float64
	for _, s := range squares {
		row += s / float64(len(squares))
	}
	for i := range to {
		to[i] = float32(deltaDoubt*math.Sqrt(squares[i]) + rowDoubt*math.Sqrt(row) + off*sizes[i] + 1e-37)
	}
}
