package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// add adds two values.
type add struct{ ordinary }

func (o add) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (add) reference(e *executable, n *plan.Node) ([]kernel, error) {
	add := e.tier.vector.add
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		add(y, e.row(n.In[0], r), e.row(n.In[1], r))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (add) bound(e *executable, n *plan.Node) (func(r int), error) {
	return func(r int) {
		to, x, y := e.bound(n.Out, r), e.bound(n.In[0], r), e.bound(n.In[1], r)
		for i, v := range e.row(n.Out, r) {
			// A scale before the addition may be rounded separately, or together with the sum.
			sizes := math.Abs(float64(e.row(n.In[0], r)[i])) + math.Abs(float64(e.row(n.In[1], r)[i]))
			to[i] = float32(at(x, i) + at(y, i) + (math.Abs(float64(v))+sizes)/(1<<23))
		}
	}, nil
}
