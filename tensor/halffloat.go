package tensor

import "math"

// F16ToF32 returns the value of an IEEE 754 binary16 number. The conversion is exact; a NaN keeps
// its sign and payload.
func F16ToF32(h uint16) float32 {
	const (
		rebias = (127 - 15) << 23 // from the exponent bias of binary16 to that of binary32
		expF16 = 0x1f << 23       // the exponent field of binary16, moved to its place in binary32
	)
	sign := uint32(h&0x8000) << 16
	b := uint32(h&0x7fff) << 13
	switch b & expF16 {
	case expF16: // infinity or NaN: the exponent becomes all ones
		b += 2 * rebias
	case 0: // zero or subnormal: the mantissa counts units of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(h&0x3ff)*0x1p-24))
	default:
		b += rebias
	}
	return math.Float32frombits(sign | b)
}

// F32ToF16 returns the IEEE 754 binary16 number nearest to f, or the even one of two equally near
// numbers. Numbers that are too large become infinite, and small ones become subnormal or zero,
// with the same sign. A NaN becomes a quiet NaN.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN: made quiet, so that dropping payload bits cannot make it an infinity
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x47800000: // 2^16 and up, infinity included
		return sign | 0x7c00
	case b >= 0x38800000: // 2^-14 and up: a normal number, or infinity after a carry
		b -= (127 - 15) << 23
		return sign | uint16((b+0xfff+b>>13&1)>>13)
	default:
		// Adding 0.5 aligns the last bit of a binary16 subnormal, 2^-24, with the last bit of a
		// float32, so that the addition rounds.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
}

// BF16ToF32 returns the value of a bfloat16 number: the upper half of a float32.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 returns the bfloat16 number nearest to f, or the even one of two equally near numbers.
// A NaN becomes a quiet NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
