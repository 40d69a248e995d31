package random

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// repairs makes random bytes into blocks that a quantizer could write. Package tensor defines the
// layouts.
var repairs = map[tensor.DType]repair{
	tensor.Q2_K:       {block: pairQ2},
	tensor.Q4_K:       {block: pairK},
	tensor.Q5_K:       {block: pairK},
	tensor.TQ2_0:      {block: ternary, levels: []float32{-1, 0, 0, 1}},
	tensor.F8_E4M3_32: {block: finite, levels: finiteE4M3()},
}

// A repair changes a block. In formats with a minimum, it sets the factors of the minimum to those
// of the scale. In others, it replaces codes that a quantizer never writes.
type repair struct {
	block  func(b []byte)
	levels []float32 // values of the codes after the repair; nil: the format's own
}

// finiteE4M3 returns the values of E4M3, with the largest in place of NaN.
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

// finite replaces the NaN codes of E4M3 by the largest number of their sign.
func finite(b []byte) {
	for i, q := range b[4:] {
		if q&0x7f == 0x7f {
			b[4+i] = q - 1
		}
	}
}

// scatter writes a scale to the words w as in [tensor.NibbleScale].
func scatter(w []byte, scale uint16) {
	for i := range 4 {
		w[2*i+1] = w[2*i+1]&0x0f | byte(scale>>(4*i))<<4
	}
}

// ternary replaces the codes of TQ2_0 that stand for 2, which no quantizer writes, by 0: of two set
// bits only the lower stays.
func ternary(b []byte) {
	for at := 0; at < 64; at += 8 {
		v := binary.LittleEndian.Uint64(b[at:])
		binary.LittleEndian.PutUint64(b[at:], v&^(v<<1&0xaaaaaaaaaaaaaaaa))
	}
}

// pairQ2 sets the minima of Q2_K, in the upper halves of the first 16 bytes, to the scales in the
// lower halves.
func pairQ2(b []byte) {
	const lower = 0x0f0f0f0f0f0f0f0f
	for at := 0; at < 16; at += 8 {
		v := binary.LittleEndian.Uint64(b[at:]) & lower
		binary.LittleEndian.PutUint64(b[at:], v|v<<4)
	}
}

// pairK sets the minima of Q4_K and Q5_K to the scales. Both have 6 bits in the 12 bytes after the
// two float16. Scales are in the first four bytes and the lower halves of the last four, minima in
// the middle four and the upper halves of the last four.
func pairK(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[8:], le.Uint32(b[4:]))
	v := le.Uint32(b[12:]) & 0x0f0f0f0f
	le.PutUint32(b[12:], v|v<<4)
}

// Scales returns the offsets in a block of d of its float16 scales. It returns none if the format
// has no such scales, or does not store them in whole bytes.
func Scales(d tensor.DType) []int {
	if f := d.Format(); f.Scale == tensor.F16Scale {
		return f.Scales
	}
	return nil
}

// moments are the first and second moments of a distribution: the means of its values and of their
// squares.
type moments struct{ first, second float64 }

// momentsOf returns the moments of n equally likely values.
func momentsOf(n int, value func(i int) float64) moments {
	var m moments
	for i := range n {
		v := value(i)
		m.first += v
		m.second += float64(v * v)
	}
	return moments{m.first / float64(n), m.second / float64(n)}
}

// codesOf returns the moments of the values of a format's codes.
func codesOf(f *tensor.Format) moments {
	levels := repairs[f.DType].levels
	if levels == nil {
		levels = f.Levels()
	}
	return momentsOf(len(levels), func(i int) float64 { return float64(levels[i]) })
}

// groupsOf returns the moments of the factors of a format's groups.
func groupsOf(f *tensor.Format) moments {
	return momentsOf(1<<f.Factor.Bits, func(i int) float64 { return f.Factor.First + float64(float64(i)*f.Factor.Step) })
}

// factors are the moments of the factors that vary the scales of a tensor's blocks: 128 to 383
// parts of 256.
var factors = momentsOf(256, func(i int) float64 { return float64(128+i) / 256 })

// prepareBlocks chooses the scales so that random blocks have the standard deviation std. Products
// are rounded before they are added, so that machines with and without fused operations have the
// same result.
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
		// With low = mean code · scale the mean is 0: in each group of a paired block, and over all
		// groups of other blocks, whose low has its own factor.
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
			return fmt.Errorf("out of the range of %v, whose scales are float16", f.dtype)
		}
	}
	return nil
}

// prepareFloats chooses the float32 scale, which each block multiplies by its own factor.
func (f *Filler) prepareFloats(std, square float64) error {
	f.scale = float32(std / math.Sqrt(square))
	if most := float64(f.scale) * 448 * 383 / 256; !(most < math.MaxFloat32) || std > 0 && f.scale < 0x1p-100 {
		return fmt.Errorf("out of the range of %v", f.dtype)
	}
	return nil
}

// preparePowers mixes two successive powers of two so that the mean square of the values is std².
// square is that of the codes.
func (f *Filler) preparePowers(std, square float64) error {
	if std == 0 {
		return fmt.Errorf("the scale of %v is a power of two and never zero", f.dtype)
	}
	scale := std / math.Sqrt(square)
	fraction, exponent := math.Frexp(scale) // fraction·2^exponent, fraction from ½ to 1
	biased := exponent - 1 + 127
	if biased < 1 || biased > 250 {
		return fmt.Errorf("out of the range of %v", f.dtype)
	}
	f.exponent = byte(biased)
	// If 4 has the share p and 1 the share 1-p, the mean is 1+3p, which must equal (2·fraction)².
	f.next = uint64((float64(4*fraction*fraction) - 1) / 3 * (1 << 32))
	return nil
}
