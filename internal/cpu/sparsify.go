package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// sparsify keeps the largest elements of rows.
type sparsify struct{ ordinary }

func (sparsify) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	a, sum, squares := n.Attr.(plan.SparsifyAttr), e.tier.vector.sum, e.tier.vector.squares
	return e.rows(n, 4, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		mean := sum(x) / float64(len(x))
		least := float32(mean + a.By*math.Sqrt(squares(x, mean)/float64(len(x))))
		for i, v := range x {
			if v -= least; v <= 0 { // keeps NaN
				v = 0
			}
			y[i] = v
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// threshold returns what is subtracted from a row, and its deviation.
func (sparsify) threshold(a plan.SparsifyAttr, x []float32) (least, deviation float64) {
	mean := sumGeneric(x) / float64(len(x))
	deviation = math.Sqrt(squaresGeneric(x, mean) / float64(len(x)))
	return mean + a.By*deviation, deviation
}

func (o sparsify) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.SparsifyAttr)
	return e.rows(n, 4, func(r int) {
		x, y := e.row(n.In[0], r), e.row(n.Out, r)
		least, _ := o.threshold(a, x)
		for i, v := range x {
			y[i] = float32(relu(float64(v) - least))
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// bound allows errors of the mean and of the deviation as large as those of the row.
func (o sparsify) bound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.SparsifyAttr)
	return func(r int) {
		x, off, to := e.row(n.In[0], r), e.bound(n.In[0], r), e.bound(n.Out, r)
		least, deviation := o.threshold(a, x)
		all := roundings * (math.Abs(least) + math.Abs(a.By)*deviation)
		if off != nil {
			all += (1 + math.Abs(a.By)) * math.Sqrt(squaresGeneric(off, 0)/float64(len(x)))
		}
		for i, v := range x {
			to[i] = float32(at(off, i) + all + fewRoundings*math.Abs(float64(v)))
		}
	}, nil
}
