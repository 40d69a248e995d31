package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// temper scales rows by positions.
type temper struct{ ordinary }

func (temper) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a, scale := n.Attr.(plan.TemperAttr), e.tier.attention.scale
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		scale(y, e.row(n.In[0], r), float32(a.At(int(e.batch.Positions[r]))))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (temper) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.TemperAttr)
	return e.rows(n, 16, func(r int) {
		x, y, by := e.row(n.In[0], r), e.row(n.Out, r), a.At(int(e.batch.Positions[r]))
		for i := range y {
			y[i] = float32(float64(x[i]) * by)
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (temper) bound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.TemperAttr)
	return func(r int) {
		x, to, by := e.row(n.In[0], r), e.bound(n.Out, r), math.Abs(a.At(int(e.batch.Positions[r])))
		for i := range to {
			to[i] = float32(by * (at(e.bound(n.In[0], r), i) + fewRoundings*math.Abs(float64(x[i]))))
		}
	}, nil
}
