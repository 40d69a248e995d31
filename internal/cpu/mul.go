package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// mul multiplies two values, element by element.
type mul struct{ ordinary }

func (mul) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	rows, column := e.tier.vector.scale, e.tier.attention.scale
	return e.rows(n, 16, func(r int) {
		x, z, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
		if len(x) == len(y) {
			rows(y, x, z, 1)
		} else {
			column(y, z, x[0])
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (mul) reference(e *executable, n *plan.Node) ([]kernel, error) {
	return e.rows(n, 16, func(r int) {
		x, z, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
		for i := range y {
			y[i] = float32(float64(x[i%len(x)]) * float64(z[i]))
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (mul) bound(e *executable, n *plan.Node) (func(r int), error) {
	return func(r int) {
		x, z, to := e.row(n.In[0], r), e.row(n.In[1], r), e.bound(n.Out, r)
		for i := range to {
			j := i % len(x)
			dx, dz := at(e.bound(n.In[0], r), j), at(e.bound(n.In[1], r), i)
			u, v := math.Abs(float64(x[j])), math.Abs(float64(z[i]))
			to[i] = float32(dx*v + dz*u + dx*dz + u*v/(1<<22) + 1e-37)
		}
	}, nil
}
