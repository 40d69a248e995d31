package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// rescale gives rows the size of others.
type rescale struct{ ordinary }

// rescaling returns the factor for a row x, by the sums of its squares and of those of like.
func rescaling(a plan.RescaleAttr, x, like float64, cols int) float64 {
	n := float64(cols)
	return math.Sqrt(like/n) / math.Sqrt(max(x/n, a.Eps))
}

func (rescale) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a, squares, scale := n.Attr.(plan.RescaleAttr), e.tier.vector.squares, e.tier.attention.scale
	return e.rows(n, 4, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		scale(y, x, float32(rescaling(a, squares(x, 0), squares(e.row(n.In[1], r), 0), len(x))))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (rescale) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.RescaleAttr)
	return e.rows(n, 4, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		by := rescaling(a, squaresGeneric(x, 0), squaresGeneric(e.row(n.In[1], r), 0), len(x))
		for i, v := range x {
			y[i] = float32(float64(v) * by)
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// bound allows an error of the factor as large as the errors of both rows, relative to their sizes.
func (rescale) bound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.RescaleAttr)
	share := func(v plan.Value, r int, least float64) float64 {
		off, x := e.bound(v, r), e.row(v, r)
		if off == nil {
			return 0
		}
		return math.Sqrt(squaresGeneric(off, 0) / max(squaresGeneric(x, 0), least))
	}
	return func(r int) {
		x, to := e.row(n.In[0], r), e.bound(n.Out, r)
		by := rescaling(a, squaresGeneric(x, 0), squaresGeneric(e.row(n.In[1], r), 0), len(x))
		doubt := roundings + share(n.In[0], r, a.Eps*float64(len(x))) + share(n.In[1], r, 1e-37)
		for i, v := range x {
			to[i] = float32(by*(at(e.bound(n.In[0], r), i)*(1+doubt)+math.Abs(float64(v))*doubt) + 1e-37)
		}
	}, nil
}
