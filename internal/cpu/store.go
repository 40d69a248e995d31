package cpu

import (
	"sync/atomic"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// store writes rows to a state per token.
type store struct{ ordinary }

func (o store) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (store) reference(e *executable, n *plan.Node) ([]kernel, error) {
	pool, s := e.kv(n.State), e.p.States[n.State]
	rows, halves := make([][]float32, len(e.desks)), make([][]uint16, len(e.desks))
	for i := range rows {
		rows[i], halves[i] = make([]float32, 0, s.HeadDim), make([]uint16, s.HeadDim)
	}
	lost := make([]atomic.Bool, e.lim.Tokens)
	return []kernel{
		one(func() { e.reach(pool.pagePool) }),
		{size: func() int { return len(e.ids) }, grain: 4, run: func(worker, lo, hi int) {
			for t := lo; t < hi; t++ {
				past := e.past(pool, e.seq[t])
				for g := range s.KVHeads {
					at := past.slot(int(e.batch.Positions[t]), g)
					part := func(in int) []float32 {
						dim := int(e.p.Shapes[n.In[in]][1]) / s.KVHeads
						return e.row(n.In[in], t)[g*dim:][:dim]
					}
					kept := false
					if s.ValueDim > 0 {
						kept = at.store(e.tier.attention, part(0), part(1), halves[worker])
					} else {
						row := rows[worker]
						for i := range n.In {
							row = append(row, part(i)...)
						}
						kept = at.storeRow(e.tier.attention, row)
					}
					if !kept {
						lost[t].Store(true)
					}
				}
			}
		}},
		one(func() {
			for t, seq := range e.seq {
				if lost[t].Swap(false) && e.overflow[seq] < 0 {
					e.overflow[seq] = n.Layer
				}
			}
		}),
	}, nil
}

func (store) bound(*executable, *plan.Node) (func(r int), error) { return func(int) {}, nil }

func (store) moved(e *executable, n *plan.Node) int {
	return e.p.States[n.State].RowBytes(e.lim.Cache) * len(e.batch.Tokens)
}

// recall reads the rows before those of the step's tokens.
type recall struct{ ordinary }

func (o recall) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (recall) reference(e *executable, n *plan.Node) ([]kernel, error) {
	pool := e.kv(n.State)
	return append([]kernel{one(func() { e.reach(pool.pagePool) })}, e.rows(n, 4, func(t int) {
		y, pos := e.row(n.Out, t), int(e.batch.Positions[t])
		if clear(y); pos > 0 {
			past := e.past(pool, e.seq[t])
			past.slot(pos-1, 0).floatKey(y)
		}
		e.wrote(n.Out, t, 0, len(y))
	})...), nil
}

// bound returns the bounds of the rows that the step itself has stored.
func (recall) bound(e *executable, n *plan.Node) (func(r int), error) {
	stored := plan.Value(-1)
	for i := range e.p.Nodes {
		if m := &e.p.Nodes[i]; m.Out < n.Out && m.Op == plan.Store && m.State == n.State && e.p.Runs(i, e.batch.Head) {
			stored = m.In[0]
		}
	}
	return func(r int) {
		to := e.bound(n.Out, r)
		clear(to)
		if stored < 0 || r == int(e.batch.Start[e.seq[r]]) {
			return
		}
		for i := range to {
			to[i] = float32(at(e.bound(stored, r-1), i))
		}
	}, nil
}

func (recall) moved(e *executable, n *plan.Node) int {
	return e.p.States[n.State].RowBytes(e.lim.Cache) * len(e.batch.Tokens)
}
