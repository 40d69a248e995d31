package cpu

import (
	"encoding/binary"

	"github.com/realizar/realizar/tensor"
)

// A block holds the decoded values of a block of quantized weights: value i is scale[i/sub]*q[i] +
// low[i/sub], where sub is that of the format.
type block struct {
	q          [256]int8
	scale, low [16]float32
}

// decode decodes a block of a format. It defines the formats for products; the values equal those
// of [tensor.Dequantize].
func (b *block) decode(f *tensor.Format, src []byte) {
	f.Codes(b.q[:f.BlockLen], src)
	f.Groups(&b.scale, &b.low, src)
	for s := f.BlockLen/recordBlock - 1; s > 0 && f.Group > recordBlock; s-- {
		g := s * recordBlock / f.Group
		b.scale[s], b.low[s] = b.scale[g], b.low[g]
	}
}

func half(b []byte) float32 { return tensor.F16ToF32(binary.LittleEndian.Uint16(b)) }

// scalesK4 returns the scales and minimums of the eight groups of a block of Q4_K or Q5_K. They are
// stored in six bits each, and multiplied by the block's two float16.
func scalesK4(src []byte) (scales [8][2]float32) {
	d, low, p := half(src), half(src[2:]), src[4:16]
	for g := range 4 {
		scales[g] = [2]float32{d * float32(p[g]&63), low * float32(p[g+4]&63)}
		scales[g+4] = [2]float32{d * float32(p[g+8]&15|p[g]>>6<<4), low * float32(p[g+8]>>4|p[g+4]>>6<<4)}
	}
	return scales
}
