package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// glu applies a gate to a value.
type glu struct{ ordinary }

func (glu) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	u, each := e.tier.gate(n), gatedColumns(e, n)
	return []kernel{{size: func() int { return e.size(n.Out) }, run: func(worker, lo, hi int) {
		for r := lo; r < hi; r++ {
			y, gate, up := e.row(n.Out, r), e.row(n.In[0], r), e.row(n.In[1], r)
			if each == 1 {
				u.apply(y, gate, up, &e.desks[worker].unit)
			} else {
				for i, g := range gate {
					u.row(y[i*each:(i+1)*each], g, up[i*each:(i+1)*each])
				}
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	}}}, nil
}

// gatedColumns returns the number of columns of up for each column of the gate.
func gatedColumns(e *executable, n *plan.Node) int {
	return int(e.p.Shapes[n.In[1]][1] / e.p.Shapes[n.In[0]][1])
}

func (glu) reference(e *executable, n *plan.Node) ([]kernel, error) {
	each := gatedColumns(e, n)
	f := unitOf(n.Attr.(plan.GLUAttr))
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			gate, up, y := e.row(n.In[0], r), e.row(n.In[1], r), e.row(n.Out, r)
			for i := range y {
				y[i] = float32(f(float64(gate[i/each]), float64(up[i])))
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	})}, nil
}

func (glu) bound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.GLUAttr)
	f, each := unitOf(a), gatedColumns(e, n)
	return func(r int) {
		gate, up, to := e.row(n.In[0], r), e.row(n.In[1], r), e.bound(n.Out, r)
		for i := range to {
			j := i / each
			to[i] = unitBound(f, &a, gate[j], up[i], float32(at(e.bound(n.In[0], r), j)), float32(at(e.bound(n.In[1], r), i)))
		}
	}, nil
}

// unitBound bounds the error of a gated unit f, by its results at the ends of the inputs' bounds.
func unitBound(f func(gate, up float64) float64, a *plan.GLUAttr, gate, up, gateBound, upBound float32) float32 {
	g, u, dg, du := float64(gate), float64(up), float64(gateBound), float64(upBound)
	y, most := f(g, u), 0.0
	if dg > 0 || du > 0 {
		for _, v := range []float64{f(g-dg, u-du), f(g-dg, u+du), f(g+dg, u-du), f(g+dg, u+du)} {
			most = max(most, math.Abs(v-y))
		}
	}
	return float32(most + 2*roundings*math.Abs(y) + fewRoundings*min(1, math.Abs(g))*(math.Abs(u)+math.Abs(a.Shift)) + 1e-37)
}

// unitOf returns the function of a [plan.GLU].
func unitOf(a plan.GLUAttr) func(gate, up float64) float64 {
	f := activations[a.Act]
	return func(gate, up float64) float64 {
		if a.Limit > 0 {
			up = max(-a.Limit, min(up, a.Limit))
			if !a.Late {
				gate = min(gate, a.Limit)
			}
		}
		if gate = f(gate); a.Limit > 0 && a.Late {
			gate = min(gate, a.Limit)
		}
		return gate * (up + a.Shift)
	}
}

// A unit computes gated units with the tier's kernels.
type unit struct {
	a            plan.GLUAttr
	f            func(x float64) float64
	glu          func(y, gate, up []float32, a plan.Activation)
	scale        func(y, x []float32, a float32)
	limit, shift float32
}

func (t *tier) unit(a plan.GLUAttr) *unit {
	return &unit{a: a, f: activations[a.Act], glu: t.vector.glu, scale: t.attention.scale, limit: float32(a.Limit), shift: float32(a.Shift)}
}

// gate returns the unit of a node.
func (t *tier) gate(n *plan.Node) *unit { return t.unit(n.Attr.(plan.GLUAttr)) }

// apply sets y to the units of gate and up, which have the same length. y may be one of them.
func (u *unit) apply(y, gate, up []float32, space *unitSpace) {
	if u.a == (plan.GLUAttr{Act: u.a.Act}) && u.a.Act != plan.QuickGELU {
		u.glu(y, gate, up, u.a.Act)
		return
	}
	for len(y) > 0 {
		n := min(unitPiece, len(y))
		g, v := space[0][:n], space[1][:n]
		copy(g, gate)
		copy(v, up)
		if !u.a.Late {
			u.limited(g)
		}
		u.shifted(v)
		switch {
		case u.a.Act == plan.QuickGELU:
			quickGELU(g, g, space, u.glu)
		case u.a.Late:
			u.glu(g, g, ones[:n], u.a.Act)
		default:
			u.glu(y[:n], g, v, u.a.Act)
			y, gate, up = y[n:], gate[n:], up[n:]
			continue
		}
		if u.a.Late {
			u.limited(g)
		}
		for i, x := range g {
			y[i] = x * v[i]
		}
		y, gate, up = y[n:], gate[n:], up[n:]
	}
}

// limited applies the limit to a gate.
func (u *unit) limited(g []float32) {
	if u.limit > 0 {
		for i, x := range g {
			g[i] = min(x, u.limit)
		}
	}
}

// shifted applies limit and shift to v.
func (u *unit) shifted(v []float32) {
	if u.limit > 0 {
		for i, x := range v {
			v[i] = max(-u.limit, min(x, u.limit))
		}
	}
	if u.shift != 0 {
		for i := range v {
			v[i] += u.shift
		}
	}
}

// row sets y to the units of up with one gate for all elements.
func (u *unit) row(y []float32, gate float32, up []float32) {
	if u.limit > 0 && !u.a.Late {
		gate = min(gate, u.limit)
	}
	by := float32(u.f(float64(gate)))
	if u.limit > 0 && u.a.Late {
		by = min(by, u.limit)
	}
	if u.limit == 0 && u.shift == 0 {
		u.scale(y, up, by)
		return
	}
	copy(y, up)
	u.shifted(y)
	u.scale(y, y, by)
}
