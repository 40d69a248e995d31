package cpu

import (
	"encoding/binary"

	"github.com/realizar/realizar/tensor"
)

// A block is what a block of quantised weights holds: value i is
// scale[i/sub]*q[i] + low[i/sub], sub being the format's here.
type block struct {
	q          [256]int8
	scale, low [16]float32
}

// decode reads a block of a format: the meaning of the formats for products, whose
// values are those of [tensor.Dequantize].
func (b *block) decode(f *tensor.Format, src []byte) {
	f.Codes(b.q[:f.BlockLen], src)
	f.Groups(&b.scale, &b.low, src)
	for s := f.BlockLen/recordBlock - 1; s > 0 && f.Group > recordBlock; s-- {
		g := s * recordBlock / f.Group
		b.scale[s], b.low[s] = b.scale[g], b.low[g]
	}
}

func half(b []byte) float32 { return tensor.F16ToF32(binary.LittleEndian.Uint16(b)) }

// scalesK4 are the scales of the eight groups of a block of Q4_K or Q5_K and what is
// subtracted there, packed in six bits each after both their scales.
func scalesK4(src []byte) (scales [8][2]float32) {
	d, low, p := half(src), half(src[2:]), src[4:16]
	for g := range 4 {
		scales[g] = [2]float32{d * float32(p[g]&63), low * float32(p[g+4]&63)}
		scales[g+4] = [2]float32{d * float32(p[g+8]&15|p[g]>>6<<4), low * float32(p[g+8]>>4|p[g+4]>>6<<4)}
	}
	return scales
}
