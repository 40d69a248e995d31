package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Bounds say how far a sound executor may be from what the reference makes of the same
// inputs, element by element: a running analysis of errors. Where an input is the
// reference's own, its bound is carried along.
//
// They rest on what package plantest asks of every backend, to which each is held with
// random inputs: 1e-5 of a product, a gated unit or attention, 1e-6 of a norm or a turn, an
// embedding to the bit. There the measure is the size of a row. Here it is what the sum
// of an element is made of, as rows of real models have values a thousand times the
// others, and so as small as what is added up is.

const (
	// roundings is a float32 function or the sum of a few terms, in parts of its size.
	roundings = 1e-5
	// fewRoundings is a few operations, in parts of what they are done to.
	fewRoundings = 4e-6
	// deviations of what is random are never exceeded: 1e-9 of all values would be.
	deviations = 6
)

// A precision is how far a product may be off: in parts of the root of its terms'
// squares, which is what a sum of random terms is about, and in parts of the same of
// its weights.
type precision struct{ relative, absolute float64 }

// precisionOf is that of weights of d. A GPU has a bf16 or f16 product of activations
// rounded alike, to 2^-9 or 2^-11 of their size at most, as are formats that lie there as
// f16: four times that, some seven deviations. Activations are divided by 64 as f16,
// which leaves steps of 2^-18 below 2^-8.
func precisionOf(d tensor.DType, lim *plan.Limits) precision {
	switch {
	case lim.Activations != tensor.Q8_0 || plan.InBytes(d) || d == tensor.F32 || d == tensor.F64:
		return precision{relative: 2 * roundings}
	case d == tensor.BF16:
		return precision{relative: 1. / (1 << 7)}
	}
	return precision{relative: 1. / (1 << 9), absolute: 1. / (1 << 18)}
}

// bound are the bounds of row r of value v, to read or to write; nil where there are
// none, or nobody wants them.
func (e *executable) bound(v plan.Value, r int) []float32 {
	if e.bounds == nil || e.bounds[v] == nil {
		return nil
	}
	k := int(e.p.Shapes[v][1])
	return e.bounds[v][r*rowStride(k):][:k:k]
}

// at is element i of bounds, which are 0 where there are none.
func at(bound []float32, i int) float64 {
	if bound == nil {
		return 0
	}
	return float64(bound[i])
}

// bounders write the bounds of rows of operations that do not while they compute.
var bounders = map[*plan.Op]func(e *executable, n *plan.Node) (row func(r int), err error){
	plan.Embed:     tableBound,
	plan.Position:  tableBound,
	plan.RMSNorm:   normBound,
	plan.LayerNorm: normBound,
	plan.Rope:      ropeBound,
	plan.GLU:       gluBound,
	plan.Map:       mapBound,
	plan.Add:       addBound,
	plan.Pick:      pickBound,
}

// tableBound is of rows as they are, but where a GPU has them as f16.
func tableBound(e *executable, n *plan.Node) (func(r int), error) {
	d, by := n.Weight.DType, 0.0
	if precisionOf(d, &e.lim).absolute > 0 && d != tensor.F16 {
		by = 1. / (1 << 11)
	}
	return func(r int) {
		to := e.bound(n.Out, r)
		for i, v := range e.row(n.Out, r) {
			to[i] = float32(by * (math.Abs(float64(v)) + 1./(1<<14))) // below 2^-14 steps are alike
		}
	}, nil
}

func addBound(e *executable, n *plan.Node) (func(r int), error) {
	return func(r int) {
		to, x, y := e.bound(n.Out, r), e.bound(n.In[0], r), e.bound(n.In[1], r)
		for i, v := range e.row(n.Out, r) {
			// A scale before it and the sum may be one rounding or two.
			sizes := math.Abs(float64(e.row(n.In[0], r)[i])) + math.Abs(float64(e.row(n.In[1], r)[i]))
			to[i] = float32(at(x, i) + at(y, i) + (math.Abs(float64(v))+sizes)/(1<<23))
		}
	}, nil
}

func pickBound(e *executable, n *plan.Node) (func(r int), error) {
	return func(r int) {
		to, token := e.bound(n.Out, r), int(e.batch.Rows[r].Token)
		if a, ok := n.Attr.(plan.PickAttr); !ok || !a.Mean {
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

// normBound goes by what comes out: it is in proportion to what went in, but for what
// is subtracted and added.
func normBound(e *executable, n *plan.Node) (func(r int), error) {
	w, err := floats(n.Weight)
	if err != nil {
		return nil, err
	}
	return func(r int) {
		x, to, in := e.row(n.In[0], r), e.bound(n.Out, r), e.bound(n.In[0], r)
		a := n.Attr.(plan.NormAttr)
		count := float64(a.Group)
		for g := 0; g < len(x); g += a.Group {
			var mean, meanOff, squares, off, top float64
			if n.Op == plan.LayerNorm {
				for i := g; i < g+a.Group; i++ {
					mean += float64(x[i]) / count
					meanOff += at(in, i) / count
				}
			}
			for i := g; i < g+a.Group; i++ {
				c := float64(x[i]) - mean
				squares += c * c
				off += math.Abs(c) * (at(in, i) + meanOff)
				top = max(top, math.Abs(c))
			}
			size := math.Sqrt(squares/count + a.Eps)
			off /= count * size * size // of the size, in parts of it
			for i := g; i < g+a.Group; i++ {
				c := math.Abs(float64(x[i]) - mean)
				bound := fewRoundings*c + c*off + at(in, i) + meanOff
				if n.Op == plan.LayerNorm {
					bound += fewRoundings * top / 4
				}
				to[i] = float32(bound / size * math.Abs(float64(w[i%len(w)])))
				if n.Op == plan.LayerNorm {
					to[i] += fewRoundings * float32(math.Abs(float64(e.row(n.Out, r)[i]))+c/size*math.Abs(float64(w[i%len(w)])))
				}
			}
		}
	}, nil
}

func ropeBound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.RopeAttr)
	return func(r int) {
		x, to, in := e.row(n.In[0], r), e.bound(n.Out, r), e.bound(n.In[0], r)
		for i := range to {
			to[i] = float32(at(in, i))
		}
		for h := 0; h < len(x); h += a.HeadDim {
			for i := range a.Dims / 2 {
				p, q := h+i, h+i+a.Dims/2
				if a.Interleaved {
					p, q = h+2*i, h+2*i+1
				}
				bound := math.Abs(a.Scale) * (at(in, p) + at(in, q) + fewRoundings*math.Hypot(float64(x[p]), float64(x[q])))
				to[p], to[q] = float32(bound), float32(bound)
			}
		}
	}, nil
}

func gluBound(e *executable, n *plan.Node) (func(r int), error) {
	a := n.Attr.(plan.GLUAttr)
	f := unitOf(a)
	return func(r int) {
		gate, up, to := e.row(n.In[0], r), e.row(n.In[1], r), e.bound(n.Out, r)
		for i := range to {
			j := i % len(gate)
			to[i] = unitBound(f, &a, gate[j], up[i], float32(at(e.bound(n.In[0], r), j)), float32(at(e.bound(n.In[1], r), i)))
		}
	}, nil
}

// unitBound is how far a gated unit f may be off, by what comes of inputs at the ends
// of their bounds.
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

func mapBound(e *executable, n *plan.Node) (func(r int), error) {
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
