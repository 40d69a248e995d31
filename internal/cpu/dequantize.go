package cpu

import "github.com/realizar/realizar/tensor"

// A dequantizer writes the float32 values of a row of weights, equal to those of
// [tensor.Dequantize] to the bit.
type dequantizer func(dst []float32, src []byte)

// dequantizer returns the tier's own dequantizer for dtype d, or that of package tensor.
func (t *tier) dequantizer(d tensor.DType) dequantizer {
	if own := t.rows[d]; own != nil {
		return own
	}
	return func(dst []float32, src []byte) {
		if err := tensor.Dequantize(d, dst, src); err != nil {
			panic(err) // the builder has checked sizes and dtype
		}
	}
}
