package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// mapping applies a function to every element.
type mapping struct{ ordinary }

// columns is the number of elements in a work item, for values with few long rows.
const columns = 1024

func (mapping) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	m, k := e.tier.mapper(n), int(e.p.Shapes[n.Out][1])
	pieces := (k + columns - 1) / columns
	return []kernel{{size: func() int { return e.size(n.Out) * pieces }, run: func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			r, at := i/pieces, i%pieces*columns
			end := min(k, at+columns)
			m.apply(e.row(n.Out, r)[at:end], e.row(n.In[0], r)[at:end], &e.desks[worker].unit)
			e.wrote(n.Out, r, at, end)
		}
	}}}, nil
}

func (mapping) reference(e *executable, n *plan.Node) ([]kernel, error) {
	f := functionOf(n.Attr.(plan.MapAttr))
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			y := e.row(n.Out, r)
			for i, x := range e.row(n.In[0], r) {
				y[i] = float32(f(float64(x)))
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	})}, nil
}

func (mapping) bound(e *executable, n *plan.Node) (func(r int), error) {
	f := functionOf(n.Attr.(plan.MapAttr))
	return func(r int) {
		to, in := e.bound(n.Out, r), e.bound(n.In[0], r)
		for i, v := range e.row(n.In[0], r) {
			x, d := float64(v), at(in, i)
			y, most := f(x), 0.0
			if d > 0 {
				most = max(math.Abs(f(x-d)-y), math.Abs(f(x+d)-y))
			}
			to[i] = float32(most + 2*roundings*math.Abs(y) + fewRoundings*min(1, math.Abs(x)) + 1e-37)
		}
	}, nil
}

// functionOf returns the function of a [plan.Map].
func functionOf(a plan.MapAttr) func(x float64) float64 {
	switch a.Func {
	case plan.Scale:
		return func(x float64) float64 { return x * a.By }
	case plan.Softcap:
		return func(x float64) float64 { return a.By * math.Tanh(x/a.By) }
	}
	return activations[a.Act]
}

// A mapper computes maps with the tier's kernels.
type mapper struct {
	a     plan.MapAttr
	glu   func(y, gate, up []float32, a plan.Activation)
	scale func(y, x []float32, a float32)
}

// mapper returns the mapper of a node.
func (t *tier) mapper(n *plan.Node) *mapper {
	return &mapper{a: n.Attr.(plan.MapAttr), glu: t.vector.glu, scale: t.attention.scale}
}

// ones is the value that an activation without an up gates.
var ones = func() (x [unitPiece]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// apply sets y to the map of x. They may be the same slice.
func (m *mapper) apply(y, x []float32, space *unitSpace) {
	switch m.a.Func {
	case plan.Scale:
		m.scale(y, x, float32(m.a.By))
		return
	case plan.Softcap:
		if &y[0] != &x[0] {
			copy(y, x)
		}
		capScores(y, m.a.By)
		return
	}
	for len(y) > 0 {
		n := min(unitPiece, len(y))
		if m.a.Act == plan.QuickGELU {
			quickGELU(y[:n], x[:n], space, m.glu)
		} else {
			m.glu(y[:n], x[:n], ones[:n], m.a.Act)
		}
		y, x = y[n:], x[n:]
	}
}
