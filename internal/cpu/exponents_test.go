package cpu

import (
	"math"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// Every tier's products with MXFP4 are correct for every exponent, also below the normal numbers
// and for NaN.
func TestExponents(t *testing.T) {
	const exponents, k = 256, 32
	f := blockFormats[tensor.MXFP4]
	src := guarded(t, exponents*f.bytes)
	for e := range exponents {
		block := src[e*f.bytes:][:f.bytes]
		for i := range block {
			block[i] = 0x11 // every value is 1/2
		}
		block[0] = byte(e)
	}
	x := make([]float32, k)
	x[5] = 127.0 / 64 // the record's d is 1/64
	record := guarded(t, recordBytes(k))
	quantizeGeneric(record, x, 0, k)
	for _, tier := range tiers() {
		kernels := tier.quantized
		w := interleave(t, kernels, tensor.MXFP4, src, exponents, k)
		totals := make([]float32, w.groups()*w.lanes)
		kernels.products[tensor.MXFP4](totals, w.section(0, w.groups()), record, recordBytes(k), 1)
		for e, got := range totals[:exponents] {
			if e == 255 {
				if got == got {
					t.Errorf("%s: product with exponent 255 is %v, want NaN", tier.name, got)
				}
				continue
			}
			want := float32(127 * math.Ldexp(1, e-128) / 64) // exact
			if got != want {
				t.Errorf("%s: product with exponent %d is %v, want %v", tier.name, e, got, want)
			}
		}
	}
}
