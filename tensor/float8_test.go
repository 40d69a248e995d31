package tensor_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// Every number of the 8-bit floats equals the formula of the specification.
func TestFloat8(t *testing.T) {
	src := make([]byte, 256)
	for i := range src {
		src[i] = byte(i)
	}
	got := make([]float32, 256)
	for _, f := range []struct {
		dtype            tensor.DType
		mantissa, bias   int
		infinite, lowest int // codes without the sign: infinity (-1: none), and the lowest NaN
	}{
		{tensor.F8_E4M3, 3, 7, -1, 0x7f},
		{tensor.F8_E5M2, 2, 15, 0x7c, 0x7d},
	} {
		if err := tensor.Dequantize(f.dtype, got, src); err != nil {
			t.Fatal(err)
		}
		for code, v := range got {
			magnitude := code & 0x7f
			exponent, fraction := magnitude>>f.mantissa, float64(magnitude&(1<<f.mantissa-1))/float64(int(1)<<f.mantissa)
			want := math.Ldexp(1+fraction, exponent-f.bias)
			switch {
			case magnitude >= f.lowest:
				want = math.NaN()
			case magnitude == f.infinite:
				want = math.Inf(1)
			case exponent == 0:
				want = math.Ldexp(fraction, 1-f.bias)
			}
			if code >= 0x80 {
				want = -want
			}
			same := float64(v) == want && math.Signbit(float64(v)) == math.Signbit(want)
			if math.IsNaN(want) {
				same = v != v
			}
			if !same {
				t.Errorf("%v %#02x is %v, want %v", f.dtype, code, v, want)
			}
		}
	}
}

// Values of a block of E4M3 numbers are the products with its scale, rounded to float32.
func TestScaledFloat8(t *testing.T) {
	codes := make([]byte, 256)
	for i := range codes {
		codes[i] = byte(i)
	}
	plain := make([]float32, 256)
	if err := tensor.Dequantize(tensor.F8_E4M3, plain, codes); err != nil {
		t.Fatal(err)
	}
	scales := []float32{1, 0.1, -3, 1e-42, 1e36, 0, float32(math.Inf(1)), float32(math.NaN())}
	var src []byte
	for i, d := range scales {
		src = binary.LittleEndian.AppendUint32(src, math.Float32bits(d))
		src = append(src, codes[32*i:][:32]...)
	}
	got := make([]float32, 256)
	if err := tensor.Dequantize(tensor.F8_E4M3_32, got, src); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if want := float32(float64(plain[i]) * float64(scales[i/32])); v != want && (v == v || want == want) {
			t.Errorf("%v times %v is %v, want %v", plain[i], scales[i/32], v, want)
		}
	}
}
