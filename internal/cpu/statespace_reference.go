package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// A stateValue is an element of a state in the reference, with the sum of the sizes of what was
// added to it and a bound of its error.
type stateValue struct{ h, size, off float64 }

// next lets one token pass: the element decays by exp(decay) and added is added.
func (v *stateValue) next(decay, decayOff, added, addedOff float64) {
	e := math.Exp(decay)
	v.off = e*(v.off+v.size*decayOff) + addedOff
	v.size = e*v.size + math.Abs(added)
	v.h = e*v.h + added
}

// reference computes the recurrence, from the state and the rows since it was taken. It rounds what
// is kept as the executor does. It also writes bounds: see [stateValue]. States and rows of earlier
// steps are exact, as they are equal in both runs but for their own roundings.
func (o stateSpace) reference(e *executable, n *plan.Node) ([]kernel, error) {
	a := n.Attr.(plan.StateSpaceAttr)
	decays, skip, bias, err := o.numbers(&a)
	if err != nil {
		return nil, err
	}
	rows := newRowsPool(e, &a)
	step := func(r, h int) (s, off float64) {
		if !a.Steps() {
			return 1, 0
		}
		raw := float64(e.row(n.In[1], r)[h]) + float64(bias[h])
		return clampStep(&a, softplus(raw)), at(e.bound(n.In[1], r), h) // the slope of softplus is at most 1
	}
	store := func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			x := e.row(n.In[0], r)
			page, at := rows.of(e, int(e.seq[r]), int(e.batch.Positions[r]))
			for h := range a.Heads {
				s, _ := step(r, h)
				for i, v := range x[h*a.HeadDim:][:a.HeadDim] {
					rows.x(page, h, at)[i] = float32(s * float64(v))
				}
				rows.decay(page, h, at)[0] = float32(s * float64(decays[h]))
			}
			for i, v := range x[a.Heads*a.HeadDim:][:a.Groups*a.States] {
				rows.input(page, i/a.States, at)[i%a.States*rows.n] = v
			}
		}
	}
	run := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			s, column := i/(a.Heads*a.HeadDim), i%(a.Heads*a.HeadDim)
			h, c := column/a.HeadDim, column%a.HeadDim
			g := h / (a.Heads / a.Groups)
			from, to := e.positions(s)
			before, after := e.slots(n.State, int32(s))
			states := make([]stateValue, a.States)
			for k := range states {
				v := float64(before[(h*a.States+k)*a.HeadDim+c])
				states[k] = stateValue{h: v, size: math.Abs(v)}
			}
			for pos := from / chunkTokens * chunkTokens; pos < to; pos++ {
				page, place := rows.of(e, s, pos)
				r := int(e.batch.Start[s]) + pos - from // negative before the step
				decay, x := float64(rows.decay(page, h, place)[0]), float64(rows.x(page, h, place)[c])
				decayOff, xOff := 0.0, 0.0
				if r >= int(e.batch.Start[s]) {
					value, off := step(r, h)
					decayOff = off * math.Abs(float64(decays[h]))
					xOff = off*math.Abs(float64(e.row(n.In[0], r)[column])) + value*at(e.bound(n.In[0], r), column)
				}
				for k := range states {
					in, inOff := float64(rows.input(page, g, place)[k*rows.n]), 0.0
					if r >= int(e.batch.Start[s]) {
						inOff = at(e.bound(n.In[0], r), a.Heads*a.HeadDim+g*a.States+k)
					}
					states[k].next(decay, decayOff+roundings*math.Abs(decay), in*x, xOff*math.Abs(in)+inOff*(math.Abs(x)+xOff))
					if (pos+1)%chunkTokens == 0 {
						states[k].h = float64(float32(states[k].h)) // as it is kept
					}
				}
				if r >= int(e.batch.Start[s]) {
					o.row(e, n, &a, r, g, column, states, float64(skip[h]))
				}
				if (pos+1)%chunkTokens == 0 && pos+1 == to/chunkTokens*chunkTokens {
					for k := range states {
						after[(h*a.States+k)*a.HeadDim+c] = float32(states[k].h)
					}
				}
			}
		}
	}
	return []kernel{
		one(func() { e.reach(rows.pagePool) }),
		{size: func() int { return len(e.ids) }, run: store},
		{size: func() int { return e.batch.Seqs() * a.Heads * a.HeadDim }, grain: 8, run: run},
	}, nil
}

// row writes an element of row r and its bound from the states after the row's token.
func (stateSpace) row(e *executable, n *plan.Node, a *plan.StateSpaceAttr, r, g, column int, states []stateValue, skip float64) {
	x, in := e.row(n.In[0], r), e.bound(n.In[0], r)
	outputs := a.Heads*a.HeadDim + (a.Groups+g)*a.States
	y := skip * float64(x[column])
	bound := math.Abs(skip)*at(in, column) + roundings*math.Abs(y)
	for k := range states {
		out := float64(x[outputs+k])
		y += out * states[k].h
		bound += math.Abs(out)*(states[k].off+roundings*states[k].size) + at(in, outputs+k)*(states[k].size+states[k].off)
	}
	e.row(n.Out, r)[column] = float32(y)
	if to := e.bound(n.Out, r); to != nil {
		to[column] = float32(bound)
	}
}
