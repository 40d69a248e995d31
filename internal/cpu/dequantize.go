package cpu

import "github.com/realizar/realizar/tensor"

// A dequantizer writes the float32 values of a row of weights, bit by bit those
// of [tensor.Dequantize].
type dequantizer func(dst []float32, src []byte)

// dequantizer is the tier's own for dtype d, or that of package tensor.
func (t *tier) dequantizer(d tensor.DType) dequantizer {
	if own := t.rows[d]; own != nil {
		return own
	}
	return func(dst []float32, src []byte) {
		if err := tensor.Dequantize(d, dst, src); err != nil {
			panic(err) // the builder has checked that sizes and dtype agree
		}
	}
}
