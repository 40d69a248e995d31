package tensor

import (
	"encoding/binary"
	"math"
)

// The formats of the OCP 8-bit Floating Point Specification, version 1.0. Every number of both is
// also a float32.

// f8E4M3ToF32 returns the value of a number with four bits of exponent and three of mantissa, in
// the variant without infinities: the largest is 448, and the next code is NaN.
func f8E4M3ToF32(b uint8) float32 {
	sign := uint32(b&0x80) << 24
	switch magnitude := uint32(b & 0x7f); {
	case magnitude == 0x7f:
		return math.Float32frombits(sign | 0x7fc00000)
	case magnitude < 8: // zero or subnormal: the mantissa counts units of 2^-9
		return math.Float32frombits(sign | math.Float32bits(float32(magnitude)*0x1p-9))
	default:
		return math.Float32frombits(sign | magnitude<<20 + (127-7)<<23)
	}
}

// f8E5M2ToF32 returns the value of a number with five bits of exponent and two of mantissa: the
// upper half of a binary16 number, including infinities and NaNs.
func f8E5M2ToF32(b uint8) float32 { return F16ToF32(uint16(b) << 8) }

// E8M0ToF32 returns 2^(e-127), or NaN for 255: a scale of the OCP Microscaling Formats
// specification, version 1.0.
func E8M0ToF32(e uint8) float32 {
	switch e {
	case 0: // below the normal numbers of float32
		return 0x1p-127
	case 255:
		return float32(math.NaN())
	}
	return math.Float32frombits(uint32(e) << 23)
}

// f8E4M3Values are the values of all 256 codes of E4M3.
var f8E4M3Values = func() (values [256]float32) {
	for b := range values {
		values[b] = f8E4M3ToF32(uint8(b))
	}
	return values
}()

// F8_E4M3_32 is d f32, q e4m3 [32]: d * q.
func dequantizeF8E4M3(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[36]byte)(src), (*[32]float32)(dst)
		src, dst = src[36:], dst[32:]
		d := math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
		for j, q := range b[4:36] {
			y[j] = d * f8E4M3Values[q]
		}
	}
}
