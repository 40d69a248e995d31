package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// connect computes the coefficients of hyper-connections, in float64: they are few.
type connect struct{ ordinary }

func (connect) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	scale, base, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	a := n.Attr.(plan.ConnectAttr)
	desks := make([][]float64, len(e.desks))
	for i := range desks {
		desks[i] = make([]float64, a.Streams*a.Streams)
	}
	return []kernel{{size: func() int { return e.size(n.Out) }, grain: 8, run: func(worker, lo, hi int) {
		for r := lo; r < hi; r++ {
			y := e.row(n.Out, r)
			connectRow(y, e.row(n.In[0], r), scale, base, &a, desks[worker])
			e.wrote(n.Out, r, 0, len(y))
		}
	}}}, nil
}

// connectRow writes the coefficients of a row. comb is scratch memory.
func connectRow(y, x, scale, base []float32, a *plan.ConnectAttr, comb []float64) {
	n := a.Streams
	logit := func(i, part int) float64 { return float64(x[i])*float64(scale[part]) + float64(base[i]) }
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	for j := range n {
		y[j] = float32(sigmoid(logit(j, 0)) + a.Eps)
	}
	if a.Last {
		return
	}
	for k := range n {
		y[a.Of(k)] = float32(2 * sigmoid(logit(n+k, 1)))
	}
	for j := range n {
		row, top, sum := comb[j*n:][:n], math.Inf(-1), 0.0
		for k := range row {
			row[k] = logit(2*n+j*n+k, 2)
			top = max(top, row[k])
		}
		for k, z := range row {
			row[k] = math.Exp(z - top)
			sum += row[k]
		}
		for k := range row {
			row[k] = row[k]/sum + a.Eps
		}
	}
	divide := func(first, apart, count int) {
		sum := a.Eps
		for i := range count {
			sum += comb[first+i*apart]
		}
		for i := range count {
			comb[first+i*apart] /= sum
		}
	}
	for i := range a.Iterations {
		if i > 0 {
			for j := range n {
				divide(j*n, 1, n)
			}
		}
		for k := range n {
			divide(k, n, n)
		}
	}
	for k := range n {
		for j := range n {
			y[a.Of(k)+1+j] = float32(comb[j*n+k])
		}
	}
}

func (connect) reference(e *executable, n *plan.Node) ([]kernel, error) {
	scale, base, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	a := n.Attr.(plan.ConnectAttr)
	return []kernel{one(func() {
		comb := make([]float64, a.Streams*a.Streams)
		for r := range e.size(n.Out) {
			y := e.row(n.Out, r)
			connectRow(y, e.row(n.In[0], r), scale, base, &a, comb)
			e.wrote(n.Out, r, 0, len(y))
		}
	})}, nil
}

// bound: an error d of the logits changes a coefficient by a factor of at most exp(d), and one of
// the matrix by at most exp(4d): a softmax by exp(2d), and dividing by sums of rows and columns
// never moves two matrices further apart (Birkhoff, 1957), up to the scale of each.
func (connect) bound(e *executable, n *plan.Node) (func(r int), error) {
	scale, base, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	return func(r int) {
		x, to := e.row(n.In[0], r), e.bound(n.Out, r)
		most := 0.0
		for i, v := range x {
			for _, s := range scale {
				s := math.Abs(float64(s))
				most = max(most, s*at(e.bound(n.In[0], r), i)+roundings*(s*math.Abs(float64(v))+math.Abs(float64(base[i]))+1))
			}
		}
		for i, y := range e.row(n.Out, r) {
			to[i] = float32(math.Abs(float64(y)) * math.Expm1(min(4*most, 10)))
		}
	}, nil
}
