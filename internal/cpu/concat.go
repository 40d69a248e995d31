package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// concat joins rows.
type concat struct{ ordinary }

func (o concat) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (concat) reference(e *executable, n *plan.Node) ([]kernel, error) {
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		copy(y[copy(y, e.row(n.In[0], r)):], e.row(n.In[1], r))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// bound copies the bounds too.
func (concat) bound(e *executable, n *plan.Node) (func(r int), error) {
	return func(r int) {
		to, first := e.bound(n.Out, r), int(e.p.Shapes[n.In[0]][1])
		for i := range to {
			if to[i] = float32(at(e.bound(n.In[1], r), max(0, i-first))); i < first {
				to[i] = float32(at(e.bound(n.In[0], r), i))
			}
		}
	}, nil
}
