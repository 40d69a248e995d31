package cpu

import (
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// spread moves columns to other places.
type spread struct{ ordinary }

func (o spread) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (spread) reference(e *executable, n *plan.Node) ([]kernel, error) {
	ids := n.Attr.(plan.SpreadAttr).IDs
	return e.rows(n, 1, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		for i := range y {
			y[i] = plan.Absent
		}
		for i, id := range ids {
			y[id] = x[i]
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (spread) bound(e *executable, n *plan.Node) (func(r int), error) {
	ids := n.Attr.(plan.SpreadAttr).IDs
	return func(r int) {
		to := e.bound(n.Out, r)
		clear(to)
		for i, id := range ids {
			to[id] = float32(at(e.bound(n.In[0], r), i))
		}
	}, nil
}
