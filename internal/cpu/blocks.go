package cpu

import (
	"encoding/binary"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A block is what a block of quantised weights holds: value i is
// scale[i/sub]*q[i] + low[i/sub].
type block struct {
	q          [256]int8
	scale, low [16]float32
}

// decode reads a block of format d: the meaning of the formats for products, whose
// values are those of [tensor.Dequantize].
func (b *block) decode(d tensor.DType, src []byte) {
	switch d {
	case tensor.Q4_0:
		b.scale[0] = half(src)
		b.nibbles(0, src[2:], func(v byte) int8 { return int8(v) - 8 })
	case tensor.Q4_1:
		b.scale[0], b.low[0] = half(src), half(src[2:])
		b.nibbles(0, src[4:], unsigned)
	case tensor.Q5_0:
		b.scale[0] = half(src)
		b.nibbles(0, src[6:], unsigned)
		b.fifths(src[2:])
		for i := range 32 {
			b.q[i] -= 16
		}
	case tensor.Q5_1:
		b.scale[0], b.low[0] = half(src), half(src[2:])
		b.nibbles(0, src[8:], unsigned)
		b.fifths(src[4:])
	case tensor.Q8_0:
		b.scale[0] = half(src)
		for i, v := range src[2:34] {
			b.q[i] = int8(v)
		}
	case tensor.IQ4_NL:
		b.scale[0] = half(src)
		b.nibbles(0, src[2:], func(v byte) int8 { return iq4Values[v] })
	case tensor.MXFP4:
		b.scale[0] = halfPower(src[0])
		b.nibbles(0, src[1:], func(v byte) int8 { return e2m1Doubles[v] })
	case tensor.Q2_K:
		d, low := half(src[80:]), half(src[82:])
		for g, sc := range src[:16] {
			b.scale[g], b.low[g] = d*float32(sc&15), -(low * float32(sc>>4))
			b.twos(g, src[16:])
		}
	case tensor.Q3_K:
		d, scales := half(src[108:]), src[96:108]
		for g := range 16 {
			sc := scales[g%8]>>(g/8*4)&15 | scales[8+g%4]>>(g/4*2)&3<<4
			b.scale[g] = d * float32(int(sc)-32)
			b.twos(g, src[32:])
			for i, h := range src[g%2*16:][:16] {
				b.q[16*g+i] += int8(h>>(g/2)&1<<2) - 4
			}
		}
	case tensor.Q4_K:
		b.scalesK4(src)
		for pair := range 4 {
			b.pair(64*pair, src[16+32*pair:])
		}
	case tensor.Q5_K:
		b.scalesK4(src)
		for pair := range 4 {
			b.pair(64*pair, src[48+32*pair:])
		}
		for i := range 256 {
			b.q[i] |= int8(src[16+i%32] >> (i / 32) & 1 << 4)
		}
	case tensor.Q6_K:
		d := half(src[208:])
		for g, s := range src[192:208] {
			b.scale[g] = d * float32(int8(s))
		}
		for i := range 256 {
			part, j := i/128, i%128
			low := src[64*part+j%64] >> (j / 64 * 4) & 15
			high := src[128+32*part+j%32] >> (j / 32 * 2) & 3
			b.q[i] = int8(low|high<<4) - 32
		}
	case tensor.IQ4_XS:
		d, high := half(src), binary.LittleEndian.Uint16(src[2:])
		for g := range 8 {
			sc := int(src[4+g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
			b.scale[g] = d * float32(sc-32)
			b.nibbles(32*g, src[8+16*g:], func(v byte) int8 { return iq4Values[v] })
		}
	}
}

var (
	iq4Values   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	e2m1Doubles = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

func half(b []byte) float32 { return tensor.F16ToF32(binary.LittleEndian.Uint16(b)) }

// halfPower is 2^(e-128), NaN for 255: half of what an E8M0 scale says, since the
// values beside it are doubled.
func halfPower(e byte) float32 {
	if e == 255 {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(e)-128))
}

func unsigned(v byte) int8 { return int8(v) }

// nibbles are 32 values at to: the lower halves of 16 bytes, and then the upper.
func (b *block) nibbles(to int, src []byte, value func(byte) int8) {
	for i, v := range src[:16] {
		b.q[to+i], b.q[to+16+i] = value(v&15), value(v>>4)
	}
}

// pair are 64 values at to: the lower halves of 32 bytes, and then the upper.
func (b *block) pair(to int, src []byte) {
	for i, v := range src[:32] {
		b.q[to+i], b.q[to+32+i] = int8(v&15), int8(v>>4)
	}
}

// fifths adds bit i of src as the fifth bit of value i.
func (b *block) fifths(src []byte) {
	high := binary.LittleEndian.Uint32(src)
	for i := range 32 {
		b.q[i] |= int8(high >> i & 1 << 4)
	}
}

// twos are the 16 values of two bits of group g.
func (b *block) twos(g int, src []byte) {
	for i, v := range src[g/8*32+g%2*16:][:16] {
		b.q[16*g+i] = int8(v >> (g / 2 % 4 * 2) & 3)
	}
}

// scalesK4 sets the scales and minima of Q4_K and Q5_K.
func (b *block) scalesK4(src []byte) {
	for g, s := range scalesK4(src) {
		b.scale[g], b.low[g] = s[0], -s[1]
	}
}

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
