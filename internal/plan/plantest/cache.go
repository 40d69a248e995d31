package plantest

import (
	"math"

	"github.com/realizar/realizar/tensor"
)

// Caches are the formats of a cache.
var Caches = []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0, tensor.F8_E4M3}

// tolerances are the allowed errors of attention by the format of the cache, times the size of a
// row: scores and values in that precision, and their sums. Unless the cache is float32, a backend
// may round queries and weights to f16, each by 2^-11, as an F16 cache rounds keys and values. With
// an F8_E4M3 cache the results are compared with those of the numbers that it keeps, of which a few
// may be rounded the other way, by 2^-3.
var tolerances = map[tensor.DType]float64{tensor.F32: 1e-5, tensor.F16: 3e-3, tensor.Q8_0: 4e-2, tensor.F8_E4M3: 0x1p-5}

// kept returns the numbers that an F8_E4M3 cache keeps of rows of heads, and x for another cache.
func kept(x [][]float64, heads int, cache tensor.DType) [][]float64 {
	if cache != tensor.F8_E4M3 {
		return x
	}
	all := make([][]float64, len(x))
	for t, row := range x {
		dim := len(row) / heads
		for h := range heads {
			all[t] = append(all[t], keptHead(row[h*dim:][:dim])...)
		}
	}
	return all
}

// keptHead rounds x to multiples of a unit that are E4M3 numbers. The unit is the smallest power of
// two for which they reach the largest of x.
func keptHead(x []float64) []float64 {
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	unit := 0x1p-32
	for 448*unit < top {
		unit *= 2
	}
	y := make([]float64, len(x))
	for i, v := range x {
		_, exponent := math.Frexp(v / unit)
		step := math.Ldexp(unit, max(exponent-4, -9)) // three bits after the first
		y[i] = math.RoundToEven(v/step) * step
	}
	return y
}

// beginnings returns the first n numbers of each head.
func beginnings(x [][]float64, heads, n int) [][]float64 {
	all := make([][]float64, len(x))
	for t, row := range x {
		dim := len(row) / heads
		for h := range heads {
			all[t] = append(all[t], row[h*dim:][:n]...)
		}
	}
	return all
}
