package tensor_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/tensor"
)

// weightFormats returns all formats of weights.
func weightFormats() (all []tensor.DType) {
	for d := tensor.DType(0); d.Weight(); d++ {
		all = append(all, d)
	}
	return all
}

// checkAgrees compares CheckFinite with the dequantized values of data.
func checkAgrees(t interface {
	Errorf(string, ...any)
	Fatal(...any)
}, d tensor.DType, data []byte) {
	values := make([]float32, len(data)/d.BlockBytes()*d.BlockLen())
	if err := tensor.Dequantize(d, values, data); err != nil {
		t.Fatal(err)
	}
	want := -1 // the first block with a value that is not finite
	for i, v := range values {
		if v-v != 0 {
			want = i / d.BlockLen()
			break
		}
	}
	err := tensor.CheckFinite(d, data)
	var e *tensor.NotFiniteError
	switch {
	case want < 0 && err != nil:
		t.Errorf("%v: finite blocks are refused: %v", d, err)
	case want >= 0 && !errors.As(err, &e):
		t.Errorf("%v: block %d of %x is not finite, the error is %v", d, want, data, err)
	case want >= 0:
		// Only this format has numbers other than scales that can be NaN.
		scale := d.Quantized() && (d != tensor.F8_E4M3_32 || e.Offset%d.BlockBytes() == 0)
		if e.Offset/d.BlockBytes() != want || e.Scale != scale {
			t.Errorf("%v: %+v, want block %d", d, e, want)
		}
		if at := uintptr(unsafe.Pointer(&data[e.Offset])); e.Addr != at {
			t.Errorf("%v: address %#x, want %#x", d, e.Addr, at)
		}
	}
}

// CheckFinite refuses a block if and only if Dequantize gives a value that is not finite.
func TestCheckFinite(t *testing.T) {
	for _, d := range weightFormats() {
		t.Run(d.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size := d.BlockBytes()
				blocks := rapid.IntRange(0, 200).Draw(t, "blocks")
				// A random scale is soon not finite, so most blocks are zeros.
				data := make([]byte, blocks*size)
				for range rapid.IntRange(0, 5).Draw(t, "spots") {
					if blocks == 0 {
						break
					}
					b := data[rapid.IntRange(0, blocks-1).Draw(t, "block")*size:][:size]
					copy(b, rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "bytes"))
				}
				checkAgrees(t, d, data)
			})
			rng := rand.New(rand.NewPCG(1, uint64(d)))
			for range 2000 {
				data := make([]byte, d.BlockBytes()*(1+rng.IntN(3)))
				for i := range data {
					data[i] = byte(rng.Uint32())
				}
				checkAgrees(t, d, data)
			}
		})
	}
}

// CheckFinite agrees with Dequantize for 16-bit numbers anywhere in a block, for all float16
// exponents and the edges of mantissas.
func TestCheckFiniteEverywhere(t *testing.T) {
	var numbers []uint16
	for upper := range uint16(64) { // sign and exponent
		for _, mantissa := range []uint16{0, 1, 0x7f, 0x80, 0x37f, 0x380, 0x3ff} {
			numbers = append(numbers, upper<<10|mantissa)
		}
	}
	for _, d := range weightFormats() {
		data := make([]byte, max(8, d.BlockBytes()))
		for at := range len(data) - 1 {
			for _, fill := range []byte{0, 0x55, 0x7b} { // no fill makes a number that is not finite
				for i := range data {
					data[i] = fill
				}
				for _, v := range numbers {
					binary.LittleEndian.PutUint16(data[at:], v)
					checkAgrees(t, d, data)
				}
			}
		}
	}
}

// The error names the number. Numbers near the end of the range are told apart.
func TestCheckFiniteEdges(t *testing.T) {
	le := binary.LittleEndian
	f64 := func(v float64) []byte { return le.AppendUint64(nil, math.Float64bits(v)) }
	// The midpoint of the largest float32 and 2^128, which is rounded up.
	middle := 0x1.ffffffp+127
	mxfp4 := func(exponent, codes byte) []byte {
		b := make([]byte, 17)
		b[0], b[9] = exponent, codes
		return b
	}
	block := func(d tensor.DType, at int, bytes ...byte) []byte {
		b := make([]byte, 3*d.BlockBytes())
		copy(b[2*d.BlockBytes()+at:], bytes)
		return b
	}
	for _, test := range []struct {
		d    tensor.DType
		data []byte
		want string // empty: finite
	}{
		{tensor.F32, []byte{0xff, 0xff, 0x7f, 0xff}, ""},
		{tensor.F32, []byte{1, 2, 3, 4, 0, 0, 0x80, 0xff}, "at byte 4: the value is -Inf"},
		{tensor.F32, []byte{1, 0, 0x80, 0x7f}, "at byte 0: the value is NaN"},
		{tensor.F16, []byte{0xff, 0x7b, 0x00, 0x7c}, "at byte 2: the value is +Inf"},
		{tensor.BF16, []byte{0x7f, 0x7f, 0x7f, 0xff, 0xc0, 0x7f}, "at byte 4: the value is NaN"},
		{tensor.F8_E4M3, []byte{0x7e, 0xfe, 0xff}, "at byte 2: the value is NaN"},
		{tensor.F8_E5M2, []byte{0x7b, 0x7c}, "at byte 1: the value is +Inf"},
		{tensor.F64, f64(math.Nextafter(middle, 0)), ""},
		{tensor.F64, f64(-middle), "at byte 0: the value is -3.4028235677973366e+38, which leaves the range of float32"},
		{tensor.F64, f64(math.Inf(1)), "at byte 0: the value is +Inf"},
		{tensor.MXFP4, mxfp4(252, 0x77), ""},
		{tensor.MXFP4, mxfp4(253, 0x55), ""},
		{tensor.MXFP4, mxfp4(253, 0x60), "at byte 0: the scale is 8.507059173023462e+37, which leaves the range of float32"},
		{tensor.MXFP4, mxfp4(254, 0x33), ""},
		{tensor.MXFP4, mxfp4(254, 0x0c), "which leaves the range of float32"},
		{tensor.MXFP4, mxfp4(255, 0), "at byte 0: the scale is NaN"},
		{tensor.Q4_K, block(tensor.Q4_K, 2, 0, 0x7c), "at byte 290: the scale is +Inf"},
		{tensor.Q6_K, block(tensor.Q6_K, 208, 1, 0xfc), "at byte 628: the scale is NaN"},
		{tensor.IQ1_M, block(tensor.IQ1_M, 53, 0xc0, 0, 0x70), "at byte 160: the scale is +Inf"},
		{tensor.I8, []byte{0xff, 0x7f}, ""},
		{tensor.F32, nil, ""},
	} {
		err := tensor.CheckFinite(test.d, test.data)
		if got := fmt.Sprint(err); test.want == "" && err != nil || test.want != "" && !strings.HasSuffix(got, test.want) {
			t.Errorf("%v %x: %v, want %q", test.d, test.data, got, test.want)
		}
	}
	if err := tensor.CheckFinite(tensor.Q8_0, make([]byte, 33)); !errors.Is(err, tensor.ErrSize) {
		t.Errorf("a part of a block: %v", err)
	}
	if err := tensor.CheckFinite(255, nil); !errors.Is(err, tensor.ErrDType) {
		t.Errorf("no format: %v", err)
	}
}

func BenchmarkCheckFinite(b *testing.B) {
	for _, d := range weightFormats() {
		b.Run(d.String(), func(b *testing.B) {
			data := make([]byte, 64<<20/d.BlockBytes()*d.BlockBytes()) // exceeds the caches
			for i := range data {
				data[i] = 1 // gives each page its own memory
			}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := tensor.CheckFinite(d, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
