package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// pick copies the rows that a step wants, or the means of their sequences.
type pick struct{ ordinary }

func (o pick) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (o pick) reference(e *executable, n *plan.Node) ([]kernel, error) {
	if n.Attr.(plan.PickAttr).Mean {
		return o.means(e, n), nil
	}
	return e.rows(n, 16, func(r int) {
		y := e.row(n.Out, r)
		copy(y, e.row(n.In[0], int(e.batch.Rows[r].Token)))
		e.wrote(n.Out, r, 0, len(y))
	}), nil
}

// means sums the rows of a sequence in float64, in the order of its tokens, some columns at a time.
func (pick) means(e *executable, n *plan.Node) []kernel {
	return e.rows(n, 1, func(r int) {
		y, s := e.row(n.Out, r), e.seq[e.batch.Rows[r].Token]
		lo, hi := int(e.batch.Start[s]), int(e.batch.Start[s+1])
		for at := 0; at < len(y); at += 64 {
			var sums [64]float64
			part := y[at:min(len(y), at+64)]
			for t := lo; t < hi; t++ {
				for i, v := range e.row(n.In[0], t)[at:][:len(part)] {
					sums[i] += float64(v)
				}
			}
			for i := range part {
				part[i] = float32(sums[i] / float64(hi-lo))
			}
		}
		e.wrote(n.Out, r, 0, len(y))
	})
}

func (pick) bound(e *executable, n *plan.Node) (func(r int), error) {
	mean := n.Attr.(plan.PickAttr).Mean
	return func(r int) {
		to, token := e.bound(n.Out, r), int(e.batch.Rows[r].Token)
		if !mean {
			for i := range to {
				to[i] = float32(at(e.bound(n.In[0], token), i))
			}
			return
		}
		lo, hi := int(e.batch.Start[e.seq[token]]), int(e.batch.Start[e.seq[token]+1])
		for i := range to {
			var sum float64
			for t := lo; t < hi; t++ {
				sum += at(e.bound(n.In[0], t), i) + fewRoundings*math.Abs(float64(e.row(n.In[0], t)[i]))
			}
			to[i] = float32(sum / float64(hi-lo))
		}
	}, nil
}

func (pick) rows(e *executable, n *plan.Node, input plan.Value) int {
	if n.Attr.(plan.PickAttr).Mean {
		return e.size(input)
	}
	return e.size(n.Out)
}
