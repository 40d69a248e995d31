package tensor

import "math"

// Formats of 4 bits whose codes index a table of levels. Nibbles are split in halves as in Q4_0.

// iq4Values and e2m1Values are the float32 values of codes. Code 8 of E2M1 is negative zero.
var (
	iq4Values = func() (values [16]float32) {
		for code, v := range iq4Table {
			values[code] = float32(v)
		}
		return values
	}()
	e2m1Values = func() (values [16]float32) {
		for code, v := range e2m1Table {
			values[code] = float32(math.Copysign(float64(v)/2, 7-float64(code)))
		}
		return values
	}()
)

// IQ4_NL is d f16, nibbles [16]: d * level.
func dequantizeIQ4_NL(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[18]byte)(src), (*[32]float32)(dst)
		src, dst = src[18:], dst[32:]
		d := f16At(b[:])
		for j, q := range b[2:18] {
			y[j] = d * iq4Values[q&15]
			y[j+16] = d * iq4Values[q>>4]
		}
	}
}

// IQ4_XS is d f16, upper scale bits u16, low scale nibbles [4], nibbles [128]:
// groups of 32, d*(scale-32) * level.
func dequantizeIQ4_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[136]byte)(src), (*[256]float32)(dst)
		src, dst = src[136:], dst[256:]
		d := f16At(b[:])
		high := uint16(b[2]) | uint16(b[3])<<8
		for group := range 8 {
			sc := uint16(b[4+group/2]>>(group%2*4)&15) | high>>(2*group)&3<<4
			scale := d * float32(int(sc)-32)
			qs := (*[16]byte)(b[8+16*group:])
			out := (*[32]float32)(y[32*group:])
			for j, q := range qs {
				out[j] = scale * iq4Values[q&15]
				out[j+16] = scale * iq4Values[q>>4]
			}
		}
	}
}

// MXFP4 is e u8, nibbles [16]: 2^(e-127) * value, the E8M0 scale and the FP4
// elements of the OCP Microscaling Formats specification, version 1.0.
func dequantizeMXFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[17]byte)(src), (*[32]float32)(dst)
		src, dst = src[17:], dst[32:]
		d := E8M0ToF32(b[0])
		for j, q := range b[1:17] {
			y[j] = d * e2m1Values[q&15]
			y[j+16] = d * e2m1Values[q>>4]
		}
	}
}

func groupsIQ4_XS(scale *[16]float32, b []byte) {
	d, high := f16At(b), uint16(b[2])|uint16(b[3])<<8
	for g := range 8 {
		sc := uint16(b[4+g/2]>>(g%2*4)&15) | high>>(2*g)&3<<4
		scale[g] = d * float32(int(sc)-32)
	}
}
