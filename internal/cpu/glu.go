package cpu

import (
	"github.com/realizar/realizar/internal/plan"
)

// unitPiece is how many elements a unit or a mapper takes at a time where it keeps
// something beside them.
const unitPiece = 256

// unitSpace is where it keeps that.
type unitSpace [3][unitPiece]float32

// A unit computes gated units by the tier's kernels.
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

// apply sets y to the units of gate and up, all of one length. y may be one of them.
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
		if u.limit > 0 {
			for i, x := range g {
				g[i] = min(x, u.limit)
			}
		}
		u.shifted(v)
		if u.a.Act == plan.QuickGELU {
			quickGELU(g, g, space, u.glu)
			for i, x := range g {
				y[i] = x * v[i]
			}
		} else {
			u.glu(y[:n], g, v, u.a.Act)
		}
		y, gate, up = y[n:], gate[n:], up[n:]
	}
}

// shifted limits and shifts what is gated.
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

// row sets y to up's units with one gate for all of them.
func (u *unit) row(y []float32, gate float32, up []float32) {
	if u.limit > 0 {
		gate = min(gate, u.limit)
	}
	by := float32(u.f(float64(gate)))
	if u.limit == 0 && u.shift == 0 {
		u.scale(y, up, by)
		return
	}
	copy(y, up)
	u.shifted(y)
	u.scale(y, y, by)
}

// quickGELU is the sigmoid of 1.702 x times x, of unitPiece elements at most. The last
// part of space is overwritten.
func quickGELU(y, x []float32, space *unitSpace, glu func(y, gate, up []float32, a plan.Activation)) {
	s := space[2][:len(x)]
	for i, v := range x {
		s[i] = 1.702 * v
	}
	glu(y, s, x, plan.Sigmoid)
}

// A mapper computes maps by the tier's kernels.
type mapper struct {
	a     plan.MapAttr
	glu   func(y, gate, up []float32, a plan.Activation)
	scale func(y, x []float32, a float32)
}

func (t *tier) mapper(a plan.MapAttr) *mapper {
	return &mapper{a: a, glu: t.vector.glu, scale: t.attention.scale}
}

// ones are what an activation by itself gates.
var ones = func() (x [unitPiece]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// apply sets y to the map of x, which may be y.
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

// columns are how many elements of a row an item is where rows may be few and long.
const columns = 1024

func apply(e *executable, n *plan.Node) ([]kernel, error) {
	m, k := e.tier.mapper(n.Attr.(plan.MapAttr)), int(e.p.Shapes[n.Out][1])
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

func glu(e *executable, n *plan.Node) ([]kernel, error) {
	u, column := e.tier.unit(n.Attr.(plan.GLUAttr)), e.p.Shapes[n.In[0]] != e.p.Shapes[n.In[1]]
	return []kernel{{size: func() int { return e.size(n.Out) }, run: func(worker, lo, hi int) {
		for r := lo; r < hi; r++ {
			y, gate, up := e.row(n.Out, r), e.row(n.In[0], r), e.row(n.In[1], r)
			if column {
				u.row(y, gate[0], up)
			} else {
				u.apply(y, gate, up, &e.desks[worker].unit)
			}
			e.wrote(n.Out, r, 0, len(y))
		}
	}}}, nil
}
