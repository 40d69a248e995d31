//go:build amd64 || arm64

package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// piece is the largest number of elements per call into assembly, which cannot be preempted.
const piece = 1 << 14

// The functions below split rows into pieces.

func blocksOfRecord(quantize func(record *byte, x *float32, blocks int)) func(record []byte, x []float32, lo, hi int) {
	return func(record []byte, x []float32, lo, hi int) {
		for ; lo < hi; lo += piece {
			values := x[lo:min(hi, lo+piece)]
			block := record[recordBytes(lo):recordBytes(lo+len(values))]
			quantize(&block[0], &values[0], len(values)/recordBlock)
		}
	}
}

type total func(x *float32, n int, center float64) float64

func (f total) of(x []float32) float64 { return f.about(x, 0) }

func (f total) about(x []float32, center float64) float64 {
	var sum float64
	for len(x) > 0 {
		n := min(piece, len(x))
		sum += f(&x[0], n, center)
		x = x[n:]
	}
	return sum
}

func scaled(f func(y, x, w *float32, n int, by float32)) func(y, x, w []float32, by float32) {
	return func(y, x, w []float32, by float32) {
		for y, x, w := y, x[:len(y)], w[:len(y)]; len(y) > 0; {
			n := min(piece, len(y))
			f(&y[0], &x[0], &w[0], n, by)
			y, x, w = y[n:], x[n:], w[n:]
		}
	}
}

func centered(f func(y, x, w, b *float32, n int, mean, by float64)) func(y, x, w, b []float32, mean, by float64) {
	return func(y, x, w, b []float32, mean, by float64) {
		for y, x, w, b := y, x[:len(y)], w[:len(y)], b[:len(y)]; len(y) > 0; {
			n := min(piece, len(y))
			f(&y[0], &x[0], &w[0], &b[0], n, mean, by)
			y, x, w, b = y[n:], x[n:], w[n:], b[n:]
		}
	}
}

// inPieces calls a function of rows in pieces.
type inPieces func(y, x, z *float32, n int)

func (f inPieces) call(y, x, z []float32) {
	for x, z := x[:len(y)], z[:len(y)]; len(y) > 0; {
		n := min(piece, len(y))
		f(&y[0], &x[0], &z[0], n)
		y, x, z = y[n:], x[n:], z[n:]
	}
}

// gated returns a GLU that uses the functions in of, and plain Go for other activations.
func gated(of map[plan.Activation]inPieces) func(y, gate, up []float32, a plan.Activation) {
	list := make([]inPieces, len(plan.Activations()))
	for a, f := range of {
		list[a] = f
	}
	return func(y, gate, up []float32, a plan.Activation) {
		if list[a] == nil {
			gluGeneric(y, gate, up, a)
			return
		}
		list[a].call(y, gate, up)
	}
}

func sound(poison func(x *float32, n int) float32) func(x []float32) bool {
	return func(x []float32) bool {
		for len(x) > 0 {
			n := min(piece, len(x))
			if poison(&x[0], n) != 0 {
				return false
			}
			x = x[n:]
		}
		return true
	}
}

func largestOfBlocks(maxima func(dst, x *float32, blocks int) float32) sample.Maxima {
	return func(dst, x []float32) bool {
		var poison float32
		for len(x) >= sample.Block {
			n := min(piece, len(x)) / sample.Block
			poison += maxima(&dst[0], &x[0], n)
			dst, x = dst[n:], x[n*sample.Block:]
		}
		return !math.IsNaN(float64(poison)) && sample.MaximaOf(dst, x)
	}
}

func turned(halves, neighbours func(y, x, cos, sin *float32, n, heads, dim int)) func(y, x, cos, sin []float32, a *plan.RopeAttr) {
	return func(y, x, cos, sin []float32, a *plan.RopeAttr) {
		f := halves
		if a.Interleaved {
			f = neighbours
		}
		for heads := max(1, piece/a.HeadDim); len(x) > 0; {
			n := min(heads, len(x)/a.HeadDim)
			f(&y[a.First], &x[a.First], &cos[0], &sin[0], len(cos), n, a.HeadDim)
			y, x = y[n*a.HeadDim:], x[n*a.HeadDim:]
		}
	}
}
