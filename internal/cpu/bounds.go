package cpu

import (
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
