package random

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A blockFormat says which values a block of random bytes stands for: scale·group·code
// for formats with one scale, scale·group·code - low·group' for those with two,
// where group and group' have the same distribution.
type blockFormat struct {
	scale       int // byte at which the float16 scale stands
	low         int // and that of what is subtracted, -1: there is none
	group, code moments
	added       bool               // low is added: it is written with the other sign
	pair        func(block []byte) // makes group' equal to group, or codes those that there are; nil: they are
}

// formats are those with scales in float16; package tensor says how they read.
var formats = map[tensor.DType]blockFormat{
	tensor.Q4_0:   {0, -1, one, integers(-8, 7), false, nil},
	tensor.Q4_1:   {0, 2, one, integers(0, 15), true, nil},
	tensor.Q5_0:   {0, -1, one, integers(-16, 15), false, nil},
	tensor.Q5_1:   {0, 2, one, integers(0, 31), true, nil},
	tensor.Q8_0:   {0, -1, one, integers(-128, 127), false, nil},
	tensor.Q2_K:   {80, 82, integers(0, 15), integers(0, 3), false, pairQ2},
	tensor.Q3_K:   {108, -1, integers(-32, 31), integers(-4, 3), false, nil},
	tensor.Q4_K:   {0, 2, integers(0, 63), integers(0, 15), false, pairK},
	tensor.Q5_K:   {0, 2, integers(0, 63), integers(0, 31), false, pairK},
	tensor.Q6_K:   {208, -1, integers(-128, 127), integers(-32, 31), false, nil},
	tensor.IQ4_NL: {0, -1, one, iq4, false, nil},
	tensor.IQ4_XS: {0, -1, integers(-32, 31), iq4, false, nil},

	tensor.IQ1_S:   {0, -1, odd(7), eighths(-15, 9735, 16384), false, nil},
	tensor.IQ1_M:   {scattered, -1, odd(7), eighths(-15, 9735, 16384), false, nil},
	tensor.IQ2_XXS: {0, -1, odd(15).times(1. / 8), signed(1094513, 2048), false, nil},
	tensor.IQ2_XS:  {0, -1, odd(15).times(1. / 8), signed(2402206, 4096), false, nil},
	tensor.IQ2_S:   {0, -1, odd(15).times(1. / 8), signed(4889327, 8192), false, nil},
	tensor.IQ3_XXS: {0, -1, odd(15).times(1. / 4), signed(974480, 1024), false, nil},
	tensor.IQ3_S:   {0, -1, odd(15), signed(118112, 2048), false, nil},
	tensor.TQ1_0:   {52, -1, one, moments{-1. / 256, 171. / 256}, false, nil},
	tensor.TQ2_0:   {64, -1, one, moments{0, 1. / 2}, false, ternary},
}

// finite makes the codes of E4M3 that stand for NaN the largest numbers, of their
// sign.
func finite(b []byte) {
	for i, q := range b[4:] {
		if q&0x7f == 0x7f {
			b[4+i] = q - 1
		}
	}
}

// scattered stands for the scale of IQ1_M, which has no bytes of its own: its nibbles
// are the upper ones of four words from byte 48 on.
const scattered = -2

// scatter writes the scale of a block of IQ1_M.
func scatter(b []byte, scale uint16) {
	for i := range 4 {
		b[49+2*i] = b[49+2*i]&0x0f | byte(scale>>(4*i))<<4
	}
}

// ternary makes the codes of TQ2_0 that stand for 2, which no quantiser writes, 0: two
// bits that are both set become the lower alone.
func ternary(b []byte) {
	for at := 0; at < 64; at += 8 {
		v := binary.LittleEndian.Uint64(b[at:])
		binary.LittleEndian.PutUint64(b[at:], v&^(v<<1&0xaaaaaaaaaaaaaaaa))
	}
}

// pairQ2 makes the minima of Q2_K, in the upper halves of the first 16 bytes, equal
// to the scales in the lower ones.
func pairQ2(b []byte) {
	const lower = 0x0f0f0f0f0f0f0f0f
	for at := 0; at < 16; at += 8 {
		v := binary.LittleEndian.Uint64(b[at:]) & lower
		binary.LittleEndian.PutUint64(b[at:], v|v<<4)
	}
}

// pairK makes the minima of Q4_K and Q5_K equal to the scales: 12 bytes after the
// two float16 hold both in 6 bits, of which scales have the first four bytes and the
// lower halves of the last four, minima the middle four and the upper halves.
func pairK(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[8:], le.Uint32(b[4:]))
	v := le.Uint32(b[12:]) & 0x0f0f0f0f
	le.PutUint32(b[12:], v|v<<4)
}

// Scales returns the bytes of a block of d at which it keeps scales in float16;
// none for a format that has no such scales, or has none of whole bytes.
func Scales(d tensor.DType) []int {
	format, ok := formats[d]
	switch {
	case !ok || format.scale == scattered:
		return nil
	case format.low < 0:
		return []int{format.scale}
	}
	return []int{format.scale, format.low}
}

// moments are the mean of a distribution and the mean of its squares.
type moments struct{ first, second float64 }

// integers is the uniform distribution over lo to hi.
func integers(lo, hi int) moments {
	var m moments
	for i := lo; i <= hi; i++ {
		m.first += float64(i)
		m.second += float64(i * i)
	}
	n := float64(hi - lo + 1)
	return moments{m.first / n, m.second / n}
}

// odd is the uniform distribution over 1, 3 and so on to 2n+1.
func odd(n int) moments {
	all := integers(0, n)
	return moments{float64(2*all.first) + 1, float64(4*all.second) + float64(4*all.first) + 1}
}

// times is the distribution of the multiples by f, a power of two.
func (m moments) times(f float64) moments { return moments{m.first * f, m.second * f * f} }

// signed is that of the n coordinates of a grid's points, whose squares have this sum,
// when half of them are negative.
func signed(squares, n float64) moments { return moments{0, squares / n} }

// eighths is that of coordinates with this sum and this sum of squares when 1/8 is
// added to half of them and subtracted from the others.
func eighths(sum, squares, n float64) moments { return moments{sum / n, squares/n + 1./64} }

var (
	one = integers(1, 1)
	// iq4 is that of the 16 levels of IQ4_NL and IQ4_XS, whose sum is -94 and whose
	// squares' sum is 72768.
	iq4 = moments{-94.0 / 16, 72768.0 / 16}
	// factors is that of what varies the scales of a tensor's blocks: 128 to 383
	// parts of 256.
	factors = moments{integers(128, 383).first / 256, integers(128, 383).second / (256 * 256)}
)

// e2m1Square is the mean square of the 16 values of MXFP4's codes: 0, ½, 1, 1½, 2,
// 3, 4, 6 and their negatives.
const e2m1Square = 68.5 / 8

// prepareBlocks chooses the scales with which random blocks have the standard
// deviation std. Products are rounded before they are added up, so that the result
// is the same on machines that could fuse the two.
func (f *Filler) prepareBlocks(std float64) error {
	if f.dtype == tensor.MXFP4 {
		return f.prepareMXFP4(std)
	}
	if f.dtype == tensor.F8_E4M3_32 {
		return f.prepareE4M3(std)
	}
	format := formats[f.dtype]
	f.places, f.pair = [2]int{format.scale, format.low}, format.pair
	square := factors.second * format.group.second * format.code.second
	if format.low >= 0 {
		// With low = mean code · scale the mean is 0, in a paired block that of every
		// group, and in another, whose low has a factor of its own, that of all.
		c := float64(format.code.first * format.code.first)
		paired := factors.second * format.group.second * (format.code.second - c)
		other := float64(factors.second*format.group.second*(format.code.second+c)) -
			float64(2*c*factors.first*factors.first*format.group.first*format.group.first)
		square = (float64(paired*(unpaired-1)) + other) / unpaired
	}
	scale := std / math.Sqrt(square)
	low := scale * format.code.first
	if format.added {
		low = -low
	}
	for i := range 256 {
		factor := float64(128+i) / 256
		f.values[0][i] = tensor.F32ToF16(float32(scale * factor))
		f.values[1][i] = tensor.F32ToF16(float32(low * factor))
	}
	const infinite, least = 0x7c00, 0x0010
	for k, place := range f.places {
		if v := f.values[k][255] & 0x7fff; place != -1 && (v >= infinite || v < least && std > 0) {
			return fmt.Errorf("it is out of the range of %v, whose scales are float16", f.dtype)
		}
	}
	return nil
}

// e4m3Square is the mean square of the 256 numbers of E4M3 when those that stand for
// NaN are 448: that of 0 to 7 times 2^-9, of 8 to 15 times 2^-9 to 2^4, and of 8 to
// 14 times 2^5 with the last one twice.
var e4m3Square = func() float64 {
	sum := float64(integers(0, 7).second) * 8 * 0x1p-18
	for e := range 14 {
		sum += float64(integers(8, 15).second) * 8 * math.Ldexp(0x1p-18, 2*e)
	}
	return (sum + float64(float64(integers(8, 14).second)*7+14*14)*0x1p10) / 128
}()

// prepareE4M3 chooses the scale that the factors of blocks vary.
func (f *Filler) prepareE4M3(std float64) error {
	f.scale = float32(std / math.Sqrt(factors.second*e4m3Square))
	if most := float64(f.scale) * 448 * 383 / 256; !(most < math.MaxFloat32) || std > 0 && f.scale < 0x1p-100 {
		return fmt.Errorf("it is out of the range of %v", f.dtype)
	}
	return nil
}

// prepareMXFP4 mixes two powers of two so that the mean square is that of std.
func (f *Filler) prepareMXFP4(std float64) error {
	if std == 0 {
		return fmt.Errorf("no block of %v is a power of two and zero", f.dtype)
	}
	scale := std / math.Sqrt(e2m1Square)
	fraction, exponent := math.Frexp(scale) // fraction·2^exponent, fraction from ½ to 1
	biased := exponent - 1 + 127
	if biased < 1 || biased > 250 {
		return fmt.Errorf("it is out of the range of %v", f.dtype)
	}
	f.exponent = byte(biased)
	// Of 4 and 1 with the shares p and 1-p the mean is 1+3p, which must be (2·fraction)².
	f.next = uint64((float64(4*fraction*fraction) - 1) / 3 * (1 << 32))
	return nil
}
