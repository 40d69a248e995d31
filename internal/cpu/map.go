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
	case plan.Softplus:
		return softplus
	case plan.Clamp:
		return func(x float64) float64 { return max(-a.By, min(x, a.By)) }
	case plan.XIELU:
		return func(x float64) float64 { return xielu(x, &a.Curve) }
	}
	return activations[a.Act]
}

// softplus is ln(1 + exp(x)). It keeps NaN.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// xielu is the function of [plan.Curve]. It keeps NaN.
func xielu(x float64, c *plan.Curve) float64 {
	if x > 0 {
		return x * (c.P*x + c.Beta)
	}
	return c.N*(math.Expm1(min(x, c.Eps))-x) + c.Beta*x
}

// xieluOf is xielu to float32, in half the time: near 0 its exponential is a series, of which
// eight terms leave 2e-8.
func xieluOf(x float64, c *plan.Curve) float32 {
	if x > 0 {
		return float32(x * (c.P*x + c.Beta))
	}
	var below float64 // exp(v) - 1
	if v := min(x, c.Eps); v < -0.5 {
		below = math.Exp(v) - 1
	} else {
		below = v * (1 + v*(1./2+v*(1./6+v*(1./24+v*(1./120+v*(1./720+v*(1./5040+v/40320)))))))
	}
	return float32(c.N*(below-x) + c.Beta*x)
}

// A mapper computes maps with the tier's kernels.
type mapper struct {
	a     plan.MapAttr
	f     func(x float64) float64
	glu   func(y, gate, up []float32, a plan.Activation)
	scale func(y, x []float32, a float32)
}

// mapper returns the mapper of a node.
func (t *tier) mapper(n *plan.Node) *mapper {
	a := n.Attr.(plan.MapAttr)
	return &mapper{a: a, f: functionOf(a), glu: t.vector.glu, scale: t.attention.scale}
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
	case plan.Softplus, plan.Clamp:
		for i, v := range x {
			y[i] = float32(m.f(float64(v)))
		}
		return
	case plan.XIELU:
		for i, v := range x {
			y[i] = xieluOf(float64(v), &m.a.Curve)
		}
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
