package random

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// Blocks of random bytes are ones that a quantiser could write but for what these
// change; package tensor says how they read.
var repairs = map[tensor.DType]repair{
	tensor.Q2_K:       {block: pairQ2},
	tensor.Q4_K:       {block: pairK},
	tensor.Q5_K:       {block: pairK},
	tensor.TQ2_0:      {block: ternary, levels: []float32{-1, 0, 0, 1}},
	tensor.F8_E4M3_32: {block: finite, levels: finiteE4M3()},
}

// A repair changes a block: in formats with a minimum, the factors of the minimum become
// equal to those of the scale; in others, codes become ones of the levels.
type repair struct {
	block  func(b []byte)
	levels []float32 // nil: the format's own
}

// finiteE4M3 are the numbers of E4M3, the largest in the place of NaN.
func finiteE4M3() []float32 {
	f := tensor.F8_E4M3_32.Format()
	levels := slices.Clone(f.Levels())
	for i, v := range levels {
		if v != v {
			levels[i] = levels[i-1]
		}
	}
	return levels
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

// scatter writes a scale as [tensor.NibbleScale] has it, the words being w.
func scatter(w []byte, scale uint16) {
	for i := range 4 {
		w[2*i+1] = w[2*i+1]&0x0f | byte(scale>>(4*i))<<4
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
	if f := d.Format(); f.Scale == tensor.F16Scale {
		return f.Scales
	}
	return nil
}

// moments are the mean of a distribution and the mean of its squares.
type moments struct{ first, second float64 }

// momentsOf are those of n values, all as likely.
func momentsOf(n int, value func(i int) float64) moments {
	var m moments
	for i := range n {
		v := value(i)
		m.first += v
		m.second += float64(v * v)
	}
	return moments{m.first / float64(n), m.second / float64(n)}
}

// codesOf are the moments of what a format's codes stand for.
func codesOf(f *tensor.Format) moments {
	levels := repairs[f.DType].levels
	if levels == nil {
		levels = f.Levels()
	}
	return momentsOf(len(levels), func(i int) float64 { return float64(levels[i]) })
}

// groupsOf are the moments of what a format's groups multiply its scale with.
func groupsOf(f *tensor.Format) moments {
	return momentsOf(1<<f.Factor.Bits, func(i int) float64 { return f.Factor.First + float64(float64(i)*f.Factor.Step) })
}

// factors is that of what varies the scales of a tensor's blocks: 128 to 383 parts of
// 256.
var factors = momentsOf(256, func(i int) float64 { return float64(128+i) / 256 })

// prepareBlocks chooses the scales with which random blocks have the standard
// deviation std. Products are rounded before they are added up, so that the result
// is the same on machines that could fuse the two.
func (f *Filler) prepareBlocks(std float64) error {
	format := f.dtype.Format()
	codes, groups := codesOf(&format), groupsOf(&format)
	f.form, f.at, f.repair = format.Scale, format.Scales, repairs[f.dtype].block
	square := factors.second * groups.second * codes.second
	switch f.form {
	case tensor.E8M0Scale:
		return f.preparePowers(std, groups.second*codes.second)
	case tensor.F32Scale:
		return f.prepareFloats(std, square)
	}
	if format.Minimum != tensor.NoMinimum {
		// With low = mean code · scale the mean is 0, in a paired block that of every
		// group, and in another, whose low has a factor of its own, that of all.
		c := float64(codes.first * codes.first)
		paired := factors.second * groups.second * (codes.second - c)
		other := float64(factors.second*groups.second*(codes.second+c)) -
			float64(2*c*factors.first*factors.first*groups.first*groups.first)
		square = (float64(paired*(unpaired-1)) + other) / unpaired
	}
	scale := std / math.Sqrt(square)
	low := -scale * codes.first * float64(format.Minimum)
	for i := range 256 {
		factor := float64(128+i) / 256
		f.values[0][i] = tensor.F32ToF16(float32(scale * factor))
		f.values[1][i] = tensor.F32ToF16(float32(low * factor))
	}
	const infinite, least = 0x7c00, 0x0010
	for k := range f.at {
		if v := f.values[k][255] & 0x7fff; v >= infinite || v < least && std > 0 {
			return fmt.Errorf("it is out of the range of %v, whose scales are float16", f.dtype)
		}
	}
	return nil
}

// prepareFloats chooses the scale that the factors of blocks vary.
func (f *Filler) prepareFloats(std, square float64) error {
	f.scale = float32(std / math.Sqrt(square))
	if most := float64(f.scale) * 448 * 383 / 256; !(most < math.MaxFloat32) || std > 0 && f.scale < 0x1p-100 {
		return fmt.Errorf("it is out of the range of %v", f.dtype)
	}
	return nil
}

// preparePowers mixes two powers of two so that the mean square, that of the codes by
// these, is that of std.
func (f *Filler) preparePowers(std, square float64) error {
	if std == 0 {
		return fmt.Errorf("no block of %v is a power of two and zero", f.dtype)
	}
	scale := std / math.Sqrt(square)
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
