package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// mix adds values, each times a column.
type mix struct{ ordinary }

func (mix) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	first := n.Attr.(plan.MixAttr).First
	one := make([]float32, e.p.Shapes[n.Out][1])
	for i := range one {
		one[i] = 1
	}
	return e.rows(n, 8, func(r int) {
		y, c := e.row(n.Out, r), e.row(n.In[0], r)[first:]
		clear(y)
		for i, v := range n.In[1:] {
			e.tier.vector.center(y, e.row(v, r), one, y, 0, float64(c[i])) // y + x*c
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (mix) reference(e *executable, n *plan.Node) ([]kernel, error) {
	first := n.Attr.(plan.MixAttr).First
	return e.rows(n, 8, func(r int) {
		y, c := e.row(n.Out, r), e.row(n.In[0], r)[first:]
		for j := range y {
			sum := 0.0
			for i, v := range n.In[1:] {
				sum += float64(c[i]) * float64(e.row(v, r)[j])
			}
			y[j] = float32(sum)
		}
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

func (mix) bound(e *executable, n *plan.Node) (func(r int), error) {
	first := n.Attr.(plan.MixAttr).First
	return func(r int) {
		to, c := e.bound(n.Out, r), e.row(n.In[0], r)[first:]
		for j := range to {
			size, off := 0.0, 0.0
			for i, v := range n.In[1:] {
				x, by := math.Abs(float64(e.row(v, r)[j])), math.Abs(float64(c[i]))
				dx, dc := at(e.bound(v, r), j), at(e.bound(n.In[0], r), first+i)
				size += x * by
				off += dx*by + dc*x + dx*dc
			}
			to[j] = float32(roundings*size + off + 1e-37)
		}
	}, nil
}
