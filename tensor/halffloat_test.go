package tensor_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/tensor"
)

// f16Value returns the value of a finite binary16 number by the definition of the format.
func f16Value(h uint16) float64 {
	exp, mantissa := int(h>>10&31), float64(h&0x3ff)
	v := math.Ldexp(1+mantissa/1024, exp-15)
	if exp == 0 {
		v = math.Ldexp(mantissa, -24)
	}
	return math.Copysign(v, 1-2*float64(h>>15))
}

func TestF16AllValues(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got := tensor.F16ToF32(h)
		negative := h>>15 == 1
		switch {
		case h&0x7fff == 0x7c00:
			if !math.IsInf(float64(got), map[bool]int{false: 1, true: -1}[negative]) {
				t.Fatalf("%#04x = %v, want an infinity", h, got)
			}
		case h&0x7fff > 0x7c00:
			if !math.IsNaN(float64(got)) || math.Signbit(float64(got)) != negative {
				t.Fatalf("%#04x = %v, want a NaN of its sign", h, got)
			}
			if back := tensor.F32ToF16(got); back != h|0x200 {
				t.Fatalf("NaN %#04x comes back as %#04x", h, back)
			}
			continue
		default:
			if want := f16Value(h); float64(got) != want || math.Signbit(float64(got)) != negative {
				t.Fatalf("%#04x = %v, want %v", h, got, want)
			}
		}
		if back := tensor.F32ToF16(got); back != h {
			t.Fatalf("%#04x = %v comes back as %#04x", h, got, back)
		}
	}
}

func TestF32ToF16Edges(t *testing.T) {
	for _, test := range []struct {
		f    float32
		want uint16
	}{
		{65504, 0x7bff},
		{65519.996, 0x7bff},
		{65520, 0x7c00}, // halfway to 2^16, which would be even
		{1e30, 0x7c00},
		{-65520, 0xfc00},
		{float32(math.Inf(-1)), 0xfc00},
		{0x1p-14, 0x0400},
		{0x1.ffbffep-15, 0x03ff},
		{0x1.ffcp-15, 0x0400}, // halfway between the largest subnormal and 2^-14
		{0x1p-24, 0x0001},
		{0x1p-25, 0x0000}, // halfway to zero, which is even
		{0x1.000002p-25, 0x0001},
		{0x1.8p-24, 0x0002},
		{-0x1p-26, 0x8000},
		{math.SmallestNonzeroFloat32, 0},
		{float32(math.Copysign(0, -1)), 0x8000},
		{2049, 0x6800}, // ties go to the even neighbour
		{2051, 0x6802},
		{math.Float32frombits(0x7f800001), 0x7e00}, // a NaN whose upper payload is zero
	} {
		if got := tensor.F32ToF16(test.f); got != test.want {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", test.f, got, test.want)
		}
	}
}

func TestF32ToF16IsNearest(t *testing.T) {
	// Exponents in and around the range of binary16, equally likely.
	values := rapid.Custom(func(t *rapid.T) float32 {
		bits := rapid.Uint32Range(0, 1<<23-1).Draw(t, "mantissa") |
			rapid.Uint32Range(127-28, 127+17).Draw(t, "exponent")<<23 |
			rapid.Uint32Range(0, 1).Draw(t, "sign")<<31
		return math.Float32frombits(bits)
	})
	rapid.Check(t, func(t *rapid.T) {
		f := values.Draw(t, "f")
		got := tensor.F32ToF16(f)
		if math.Signbit(float64(f)) != (got>>15 == 1) {
			t.Fatalf("F32ToF16(%v) = %#04x has another sign", f, got)
		}
		a, magnitude := math.Abs(float64(f)), got&0x7fff
		if magnitude == 0x7c00 {
			if a < 65520 {
				t.Fatalf("F32ToF16(%v) is infinite", f)
			}
			return
		}
		dist := math.Abs(f16Value(magnitude) - a)
		for _, other := range []uint16{magnitude - 1, magnitude + 1} {
			if other == 0xffff {
				continue
			}
			v := f16Value(other)
			if other == 0x7c00 {
				v = 65536
			}
			d := math.Abs(v - a)
			if d < dist || d == dist && magnitude&1 == 1 {
				t.Fatalf("F32ToF16(%v) = %#04x, but %#04x is nearer, or as near and even", f, got, other)
			}
		}
	})
}

func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := tensor.BF16ToF32(h)
		want := h
		if f != f {
			want |= 0x40
		}
		if back := tensor.F32ToBF16(f); back != want {
			t.Fatalf("%#04x = %v comes back as %#04x", h, f, back)
		}
	}
	for _, test := range []struct{ bits, want uint32 }{
		{0x3f808000, 0x3f80}, // ties go to the even neighbour
		{0x3f818000, 0x3f82},
		{0x3f808001, 0x3f81},
		{0x3f807fff, 0x3f80},
		{0x7f7fffff, 0x7f80}, // the largest float32 rounds to infinity
		{0xff7fffff, 0xff80},
		{0x7f800001, 0x7fc0}, // a NaN stays a NaN
		{0x00000001, 0x0000},
		{0x00018000, 0x0002},
	} {
		if got := tensor.F32ToBF16(math.Float32frombits(test.bits)); uint32(got) != test.want {
			t.Errorf("F32ToBF16(bits %#08x) = %#04x, want %#04x", test.bits, got, test.want)
		}
	}
}
