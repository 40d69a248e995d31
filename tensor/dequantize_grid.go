package tensor

import (
	"encoding/binary"
	"math/bits"
)

// Formats of 1 to 3 bits, in blocks of 256: values are points of a grid, see grid.go. Formats whose
// levels are all positive also store signs. A block has eight consecutive groups of 32. The stored
// n of a scale stands for n + 1/2 or 2n + 1.

// signs7 returns eight signs of which seven are stored: the number of negative ones is even.
func signs7(stored uint32) uint8 {
	low := uint8(stored & 127)
	return low | uint8(bits.OnesCount8(low)&1)<<7
}

// signed returns v, negated if bit j of signs is set.
func signed(v int8, signs uint8, j int) float32 {
	negative := int8(signs >> j & 1)
	return float32((v ^ -negative) + negative)
}

// IQ1_S is d f16, low bits of points [32], group words u16 [8]. A word has three upper bits per
// point, then three bits of scale and the sign of 1/8, which is added to all coordinates:
// d*(2*scale+1) * (point ± 1/8).
func dequantizeIQ1_S(dst []float32, src []byte) {
	grid := iq1Grid()
	for len(dst) > 0 {
		b, y := (*[50]byte)(src), (*[256]float32)(dst)
		src, dst = src[50:], dst[256:]
		d := f16At(b[:])
		for group := range 8 {
			word := uint32(b[34+2*group]) | uint32(b[35+2*group])<<8
			scale := d * float32(2*(word>>12&7)+1)
			eighth := iq1Eighth(word >> 15)
			for l := range 4 {
				point := &grid[uint32(b[2+4*group+l])|word>>(3*l)&7<<8]
				out := (*[8]float32)(y[32*group+8*l:])
				for j, v := range point {
					out[j] = scale * (float32(v) + eighth)
				}
			}
		}
	}
}

// iq1Eighth returns the 1/8 that the 1-bit formats add to the levels of a group, with a minus sign
// unless negative is 0.
func iq1Eighth(negative uint32) float32 {
	if negative != 0 {
		return -0.125
	}
	return 0.125
}

// IQ1_M is low bits of points [32], nibbles of their upper bits and signs of 1/8 [16], words of
// scales u16 [4]. It is like IQ1_S, with a sign of 1/8 for every point and a three-bit scale for
// every 16 values. d is the upper nibbles of the words.
func dequantizeIQ1_M(dst []float32, src []byte) {
	grid := iq1Grid()
	for len(dst) > 0 {
		b, y := (*[56]byte)(src), (*[256]float32)(dst)
		src, dst = src[56:], dst[256:]
		words := binary.LittleEndian.Uint64(b[48:])
		d := iq1mScale(words)
		for part := range 16 {
			// Each word has the three-bit scales of four parts.
			scale := d * float32(2*(words>>(part/4*16+part%4*3)&7)+1)
			for l := 2 * part; l < 2*part+2; l++ {
				nibble := uint32(b[32+l/2] >> (l % 2 * 4))
				point := &grid[uint32(b[l])|nibble&7<<8]
				eighth := iq1Eighth(nibble >> 3 & 1)
				out := (*[8]float32)(y[8*l:])
				for j, v := range point {
					out[j] = scale * (float32(v) + eighth)
				}
			}
		}
	}
}

// iq1mScale returns d of IQ1_M.
func iq1mScale(words uint64) float32 {
	return F16ToF32(uint16(words>>12&0xf | words>>24&0xf0 | words>>36&0xf00 | words>>48&0xf000))
}

// IQ2_XXS is d f16, groups of points [4] and u32 [8]. A word has seven bits of signs per point; its
// last four bits are the scale: d*(scale+1/2)/4 * level.
func dequantizeIQ2_XXS(dst []float32, src []byte) {
	grid := iq2xxsGrid()
	for len(dst) > 0 {
		b, y := (*[66]byte)(src), (*[256]float32)(dst)
		src, dst = src[66:], dst[256:]
		d := f16At(b[:])
		for group := range 8 {
			qs := (*[8]byte)(b[2+8*group:])
			word := binary.LittleEndian.Uint32(qs[4:])
			scale := d * (0.5 + float32(word>>28)) * 0.25
			for l, q := range qs[:4] {
				signs := signs7(word >> (7 * l))
				out := (*[8]float32)(y[32*group+8*l:])
				for j, v := range grid[q] {
					out[j] = scale * signed(v, signs, j)
				}
			}
		}
	}
}

// IQ2_XS is d f16, points u16 [32], scale nibbles [8]. A point has nine bits, and seven bits of
// signs. Every 16 values have a scale: d*(scale+1/2)/4 * level.
func dequantizeIQ2_XS(dst []float32, src []byte) {
	grid := iq2xsGrid()
	for len(dst) > 0 {
		b, y := (*[74]byte)(src), (*[256]float32)(dst)
		src, dst = src[74:], dst[256:]
		d := f16At(b[:])
		for l := range 32 {
			scale := d * (0.5 + float32(b[66+l/4]>>(l/2%2*4)&15)) * 0.25
			q := uint32(b[2+2*l]) | uint32(b[3+2*l])<<8
			signs := signs7(q >> 9)
			out := (*[8]float32)(y[8*l:])
			for j, v := range grid[q&511] {
				out[j] = scale * signed(v, signs, j)
			}
		}
	}
}

// IQ2_S is d f16, low bits of points [32], signs [32], upper bits of points [8], scale nibbles [8].
// It is like IQ2_XS, with ten bits per point and all eight signs.
func dequantizeIQ2_S(dst []float32, src []byte) {
	grid := iq2sGrid()
	for len(dst) > 0 {
		b, y := (*[82]byte)(src), (*[256]float32)(dst)
		src, dst = src[82:], dst[256:]
		d := f16At(b[:])
		for l := range 32 {
			scale := d * (0.5 + float32(b[74+l/4]>>(l/2%2*4)&15)) * 0.25
			point := &grid[uint32(b[2+l])|uint32(b[66+l/4])>>(l%4*2)&3<<8]
			signs := b[34+l]
			out := (*[8]float32)(y[8*l:])
			for j, v := range point {
				out[j] = scale * signed(v, signs, j)
			}
		}
	}
}

// IQ3_XXS is d f16, points [64], u32 [8]. A group's word has seven bits of signs for every two
// points of four values; its last four bits are the scale: d*(scale+1/2)/2 * level.
func dequantizeIQ3_XXS(dst []float32, src []byte) {
	grid := iq3xxsGrid()
	for len(dst) > 0 {
		b, y := (*[98]byte)(src), (*[256]float32)(dst)
		src, dst = src[98:], dst[256:]
		d := f16At(b[:])
		for group := range 8 {
			word := binary.LittleEndian.Uint32(b[66+4*group:])
			scale := d * (0.5 + float32(word>>28)) * 0.5
			for l := range 8 {
				signs := signs7(word>>(l/2*7)) >> (l % 2 * 4)
				out := (*[4]float32)(y[32*group+4*l:])
				for j, v := range grid[b[2+8*group+l]] {
					out[j] = scale * signed(v, signs, j)
				}
			}
		}
	}
}

// IQ3_S is d f16, low bits of points [64], their ninth bits [8], signs [32], scale nibbles [4].
// Groups of 32 are d*(2*scale+1) * level.
func dequantizeIQ3_S(dst []float32, src []byte) {
	grid := iq3sGrid()
	for len(dst) > 0 {
		b, y := (*[110]byte)(src), (*[256]float32)(dst)
		src, dst = src[110:], dst[256:]
		d := f16At(b[:])
		for l := range 64 {
			scale := d * float32(2*(b[106+l/16]>>(l/8%2*4)&15)+1)
			point := &grid[uint32(b[2+l])|uint32(b[66+l/8])>>(l%8)&1<<8]
			signs := b[74+l/2] >> (l % 2 * 4)
			out := (*[4]float32)(y[4*l:])
			for j, v := range point {
				out[j] = scale * signed(v, signs, j)
			}
		}
	}
}

// levelsIQ1 returns the coordinates of the 1-bit formats' points plus and minus 1/8.
func levelsIQ1() []float32 {
	var all []float32
	for _, point := range iq1Grid() {
		for _, v := range point {
			all = append(all, float32(v)+iq1Eighth(0), float32(v)+iq1Eighth(1))
		}
	}
	return all
}

// signedLevels returns the coordinates of points, and their negatives.
func signedLevels[P point4 | point8](points []P) []float32 {
	var all []float32
	for _, point := range points {
		for i := range len(point) {
			all = append(all, float32(point[i]), -float32(point[i]))
		}
	}
	return all
}
