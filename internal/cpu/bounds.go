package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Bounds say how far a correct executor may be from the reference's result on the same inputs,
// element by element: a running analysis of errors. If an input is the reference's own value, its
// bound is propagated.
//
// They rest on the tolerances that package plantest requires of every backend for random inputs:
// 1e-5 for a product, a gated unit or attention, 1e-6 for a norm or a rotation, exact for an
// embedding. There the tolerance is relative to the size of a row. Here it is relative to the terms
// of an element's sum, because rows of real models contain values a thousand times larger than
// others.

const (
	// roundings bounds the relative error of a float32 function or a sum of a few terms.
	roundings = 1e-5
	// fewRoundings bounds the relative error of a few operations.
	fewRoundings = 4e-6
	// halves bounds the error of a sum of terms rounded to f16, each by at most 2^-11 of its size,
	// as a fraction of the root of their squares: about seven standard deviations. Terms below
	// 2^-14 are rounded by 2^-25.
	halves, halfStep = 1. / (1 << 9), 1. / (1 << 23)
	// Random errors stay within this many standard deviations; 1e-9 of all values would exceed
	// them.
	deviations = 6
)

// A precision bounds the error of a product.
type precision struct {
	relative float64 // fraction of the root of the terms' squares, the size of a sum of random terms
	absolute float64 // fraction of the root of the weights' squares
	least    float64 // fraction of the row's largest weight times the root of the activations' squares
	group    int     // number of weights that share a scale that is rounded as coarsely as a weight; 0: none
	minimum  bool    // the minimum of a group is rounded as coarsely too
}

// precisionOf returns the precision of products with weights of d. A GPU rounds to bf16 or f16,
// which has an error of at most 2^-8 or 2^-11 of the value, and a root mean square error of 0.42
// times that. Four times that is about seven standard deviations for a sum of terms with two
// rounded factors: activations, and weights that are stored in f16 or converted to f16 from codes
// and scales. With bf16 weights only activations are rounded, and three times is enough.
// Activations in f16 are divided by 64, so that below 2^-8 the steps are 2^-18; the bound is four
// half steps. Rows of codes are scaled so that f16 scales are less than 2^15 times codes in steps
// of 2^-24. A row's largest weight is then about 2^(bits-10), and below 2^-14 the steps are 2^-24;
// the bound is eight half steps. Scales that are products themselves, or float32, are rounded before,
// each for all weights of a group.
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
		p.relative *= 2 // a block has so few distinct weights that one rounding affects many
	case f.E4M3:
		p.group = f.Group
	case f.InBytes:
		p.least = math.Ldexp(1, -12-f.Bits)
		if f.Factor.Bits > 0 {
			p.group, p.minimum = f.Group, f.Minimum != tensor.NoMinimum
		}
	}
	return p
}

// scales returns the sum over groups of the squared errors that one rounded scale causes, as
// fractions of a scale, for weights w and activations x. A weight is code*scale + minimum. The
// minimum is at most the largest weight of a group in which some code is 0. With the sums t of the
// terms and s of the activations, a group has two errors, of t + minimum*s and of minimum*s, or one
// error of t without a minimum.
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

// bound returns the bounds of row r of value v, for reading or writing; nil if v has none.
func (e *executable) bound(v plan.Value, r int) []float32 {
	if e.bounds == nil || e.bounds[v] == nil {
		return nil
	}
	k := int(e.p.Shapes[v][1])
	return e.bounds[v][r*rowStride(k):][:k:k]
}

// at returns element i of bounds; 0 if bounds is nil.
func at(bound []float32, i int) float64 {
	if bound == nil {
		return 0
	}
	return float64(bound[i])
}
