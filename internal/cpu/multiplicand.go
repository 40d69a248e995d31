package cpu

import (
	"math"

	"github.com/realizar/realizar/tensor"
)

// A multiplicand is a row of activations after rounding for a product, with bounds of its distance
// from the activations of a correct executor: a variance and a maximum per element. Both are nil if
// the row has no bounds.
type multiplicand struct {
	x      []float32
	size   float64 // root of the sum of the squares
	spread []float64
	most   []float64
}

// A weightRow is a row of weights, and what of a product's bound depends on it alone.
type weightRow struct {
	w        []float32
	p        precision
	absolute float64
	least    float64 // times the size of the activations
}

// row returns a row of weights with precision p.
func (p precision) row(w []float32) weightRow {
	r := weightRow{w: w, p: p}
	if p.absolute > 0 {
		r.absolute = p.absolute * math.Sqrt(squared(w))
	}
	if p.least > 0 {
		r.least = p.least * largest(w)
	}
	return r
}

// multiplicand returns x rounded for weights of d. bound are the bounds of x, or nil.
//
// If x is exact, so is its rounding to 8 bits. Otherwise a few values may round in the other
// direction, which is an error of one step. The probability of that is the bound of x in steps, and
// at most 1.
func (e *executable) multiplicand(d tensor.DType, x, bound []float32) multiplicand {
	o := multiplicand{x: x}
	inBytes := e.lim.Activations == tensor.Q8_0 && blockFormats[d] != nil
	if inBytes {
		record := make([]byte, recordBytes(len(x)))
		quantizeGeneric(record, x, 0, len(x))
		o.x = recorded(record)
	}
	o.size = math.Sqrt(squared(o.x))
	if bound == nil {
		return o
	}
	o.spread, o.most = make([]float64, len(x)), make([]float64, len(x))
	var step float64
	for i, b := range bound {
		off := float64(b)
		o.spread[i], o.most[i] = off*off, off
		if !inBytes {
			continue
		}
		if i%recordBlock == 0 {
			step = largest(x[i:][:recordBlock]) / 127
		}
		off += roundings * math.Abs(float64(x[i])) // the scale may be wrong by as much
		o.spread[i], o.most[i] = step*min(step, 2*off), step
	}
	return o
}

// largest returns the largest magnitude in x.
func largest(x []float32) float64 {
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(float64(v)))
	}
	return top
}

// squared returns the sum of the squares of x.
func squared(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// times returns r.w·o.x + bias, and a bound of its distance from the product of a correct executor.
func (o *multiplicand) times(r *weightRow, bias float32) (y, bound float64) {
	var sum, squares float64
	w := r.w[:len(o.x)]
	for i, v := range o.x {
		t := float64(w[i]) * float64(v)
		sum += t
		squares += t * t
	}
	y = sum + float64(bias)
	bound = r.p.relative*math.Sqrt(squares+r.p.scales(w, o.x)) + roundings*(math.Abs(sum)+math.Abs(float64(bias)))
	bound += r.absolute + r.least*o.size
	if o.spread != nil {
		var variance, most float64
		for i, s := range o.spread[:len(w)] {
			u := float64(w[i])
			variance += u * u * s
			if m := math.Abs(u) * o.most[i]; m > most {
				most = m
			}
		}
		bound += deviations*math.Sqrt(variance) + most + 2*roundings*math.Abs(sum)
	}
	return y, bound
}

// A rowReader reads rows of a weight in its stored format. Rows of a derived weight are computed a
// few at a time.
type rowReader struct {
	w      *tensor.Tensor
	lo, hi int // range of rows in piece
	piece  []byte
}

func (r *rowReader) row(i int) []byte {
	if r.w.Source == nil {
		return r.w.Row(i)
	}
	size := r.w.RowBytes()
	if i < r.lo || i >= r.hi {
		r.lo, r.hi = i, min(i+pieceRows, r.w.Rows())
		if r.piece == nil {
			r.piece = make([]byte, pieceRows*size)
		}
		if err := r.w.ReadRows(r.piece[:(r.hi-r.lo)*size], r.lo, r.hi); err != nil {
			r.hi = r.lo
			panic(err) // becomes the step's error
		}
	}
	return r.piece[(i-r.lo)*size:][:size]
}
