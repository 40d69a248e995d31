package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// mul multiplies two values, element by element.
type mul struct{ ordinary }

// factors returns a function for the factors of a row: x, or its one column, and z, which may be a
// weight.
func (mul) factors(e *executable, n *plan.Node) (func(r int) (x, z []float32), error) {
	w, err := floats(n.Weight)
	return func(r int) (x, z []float32) {
		if w != nil {
			return e.row(n.In[0], r), w
		}
		return e.row(n.In[0], r), e.row(n.In[1], r)
	}, err
}

func (o mul) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	factors, err := o.factors(e, n)
	if err != nil {
		return nil, err
	}
	rows, column := e.tier.vector.scale, e.tier.attention.scale
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		if x, z := factors(r); len(x) == len(y) {
			rows(y, x, z, 1)
		} else {
			column(y, z, x[0])
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (o mul) reference(e *executable, n *plan.Node) ([]kernel, error) {
	factors, err := o.factors(e, n)
	if err != nil {
		return nil, err
	}
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		x, z := factors(r)
		for i := range y {
			y[i] = float32(float64(x[i%len(x)]) * float64(z[i]))
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (o mul) bound(e *executable, n *plan.Node) (func(r int), error) {
	factors, err := o.factors(e, n)
	return func(r int) {
		to, dx := e.bound(n.Out, r), e.bound(n.In[0], r)
		var dz []float32
		if len(n.In) > 1 {
			dz = e.bound(n.In[1], r)
		}
		x, z := factors(r)
		for i := range to {
			j := i % len(x)
			u, v := math.Abs(float64(x[j])), math.Abs(float64(z[i]))
			to[i] = float32(at(dx, j)*v + at(dz, i)*u + at(dx, j)*at(dz, i) + u*v/(1<<22) + 1e-37)
		}
	}, err
}
