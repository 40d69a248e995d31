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
	// halves is a sum of terms that are rounded to f16, each by 2^-11 of its size at most, in
	// parts of the root of their squares: some seven deviations. Below 2^-14 they are rounded by 2^-25.
	halves, halfStep = 1. / (1 << 9), 1. / (1 << 23)
	// deviations of what is random are never exceeded: 1e-9 of all values would be.
	deviations = 6
)

// A precision is how far a product may be off.
type precision struct {
	relative float64 // in parts of the root of its terms' squares, which is what a sum of random terms is about
	absolute float64 // in parts of the same of its weights
	least    float64 // in parts of the largest weight of the row and of the same of its activations
	group    int     // weights of which a rounded scale is as far off as a weight, 0 for none
	minimum  bool    // and so is what is added to them
}

// precisionOf is that of weights of d. What a GPU rounds, to bf16 or to f16, is off by 2^-8
// or 2^-11 of its size at most, and by 0.42 times that in the mean of squares. Four times
// that are some seven deviations of a sum of terms of which both factors are rounded:
// activations, and weights that lie there as f16 or are made f16 of codes and scales. Beside
// weights of bf16 activations alone are rounded, for which three times are as many.
// Activations are divided by 64 as f16, which leaves steps of 2^-18 below 2^-8: four times
// half of one. Rows of codes are brought to where scales of f16 are less than 2^15 times
// codes in steps of 2^-24, so that a row's largest weight is about 2^(bits-10) and steps of
// 2^-24 are left below 2^-14: eight times half of one. Scales that are products themselves
// are rounded before, each for all weights of a group.
func precisionOf(d tensor.DType, lim *plan.Limits) precision {
	f := d.Format()
	switch {
	case lim.Activations != tensor.F16 || d == tensor.F32 || d == tensor.F64:
		return precision{relative: 2 * roundings}
	case d == tensor.BF16:
		return precision{relative: 3. / (1 << 8)}
	}
	p := precision{relative: 1. / (1 << 9), absolute: 1. / (1 << 17)}
	switch {
	case d == tensor.IQ1_S || d == tensor.IQ1_M:
		p.relative *= 2 // weights of a block have so few values that one rounding is that of many
	case f.InBytes:
		p.least = math.Ldexp(1, -12-f.Bits)
		if f.Factor.Bits > 0 {
			p.group, p.minimum = f.Group, f.Minimum != tensor.NoMinimum
		}
	}
	return p
}

// scales is the sum of squares, one for each group, of what is off as a rounded scale is, for
// weights w of activations x. A weight is code*scale + minimum, and the minimum no larger than
// the largest weight of a group in which some code is 0. So with the sums t of the terms and
// x of the activations a group is off by parts of t + minimum*x and of minimum*x, which are
// two numbers, or of t without a minimum.
func (p *precision) scales(w, x []float32) float64 {
	var squares float64
	for i := 0; p.group > 0 && i < len(x); i += p.group {
		var terms, inputs, top float64
		for j := i; j < min(i+p.group, len(x)); j++ {
			u, v := float64(w[j]), float64(x[j])
			terms, inputs, top = terms+u*v, inputs+v, max(top, math.Abs(u))
		}
		if !p.minimum {
			squares += terms * terms
			continue
		}
		squares += 2*terms*terms + 3*top*top*inputs*inputs
	}
	return squares
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
