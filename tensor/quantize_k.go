package tensor

// Quantization to the K formats, laid out as in dequantize_k.go. The scales of groups are fitted
// first. Then the factor that they share is chosen and rounded. Then each group's integers with the
// smallest error are chosen for that factor.

// A lineK is the part that Q4_K and Q5_K share: the header of a block and the codes of its 256
// values.
type lineK struct {
	header [16]byte // d f16, dmin f16, scales and minima [12]
	codes  [256]uint8
}

// quantize quantizes x [256]; codes go up to top.
func (k *lineK) quantize(x []float32, top int) {
	*k = lineK{}
	var scales, lows [8]float64
	most, deepest := 0.0, 0.0
	for g := range 8 {
		scale, offset := fitLine(x[32*g:][:32], top)
		scales[g], lows[g] = scale, -offset
		most, deepest = max(most, scale), max(deepest, -offset)
	}
	d, dmin := putFactor(k.header[:], most/63), putFactor(k.header[2:], deepest/63)
	packed := (*[12]byte)(k.header[4:])
	for g := range 8 {
		values := x[32*g:][:32]
		scale, low := bestLine(values, d, dmin, quotient(float32(scales[g]), float64(d)), quotient(float32(lows[g]), float64(dmin)), top)
		putScaleMinK4(g, packed, uint8(scale), uint8(low))
		step, offset := d*float32(scale), dmin*float32(low)
		for j, v := range values {
			k.codes[32*g+j] = uint8(nearest(quotient(v+offset, float64(step)), 0, top))
		}
	}
}

// bestLine returns the 6-bit integers next to scale and low with the smallest error for x, or zeros
// if these are better: F16 may be too coarse for d and dmin.
func bestLine(x []float32, d, dmin float32, scale, low float64, top int) (bestScale, bestLow int) {
	at, under := nearest(scale, 0, 63), nearest(low, 0, 63)
	best := 0.0
	for _, v := range x {
		best += float64(v) * float64(v) // products are exact
	}
	for s := max(at-1, 0); s <= min(at+1, 63); s++ {
		for m := max(under-1, 0); m <= min(under+1, 63); m++ {
			step, offset := d*float32(s), dmin*float32(m)
			off := 0.0
			for _, v := range x {
				q := nearest(quotient(v+offset, float64(step)), 0, top)
				e := float64(v) - float64(float32(step*float32(q))-offset)
				off += float64(e * e)
			}
			if off < best {
				bestScale, bestLow, best = s, m, off
			}
		}
	}
	return bestScale, bestLow
}

// putScaleMinK4 writes the form that [scaleMinK4] reads. The bytes must be zero before the first
// call.
func putScaleMinK4(j int, b *[12]byte, scale, low uint8) {
	if j < 4 {
		b[j] |= scale
		b[j+4] |= low
		return
	}
	b[j+4] |= scale&15 | low<<4
	b[j-4] |= scale >> 4 << 6
	b[j] |= low >> 4 << 6
}

func quantizeQ4_K(dst []byte, src []float32) {
	var k lineK
	for len(src) > 0 {
		b := (*[144]byte)(dst)
		k.quantize(src[:256], 15)
		dst, src = dst[144:], src[256:]
		copy(b[:], k.header[:])
		for pair := range 4 {
			codes := k.codes[64*pair:][:64]
			for j := range 32 {
				b[16+32*pair+j] = codes[j] | codes[j+32]<<4
			}
		}
	}
}

func quantizeQ5_K(dst []byte, src []float32) {
	var k lineK
	for len(src) > 0 {
		b := (*[176]byte)(dst)
		k.quantize(src[:256], 31)
		dst, src = dst[176:], src[256:]
		clear(b[16:48])
		copy(b[:], k.header[:])
		for pair := range 4 {
			codes := k.codes[64*pair:][:64]
			for j := range 32 {
				b[16+j] |= codes[j]>>4<<(2*pair) | codes[j+32]>>4<<(2*pair+1)
				b[48+32*pair+j] = codes[j]&15 | codes[j+32]<<4
			}
		}
	}
}

func quantizeQ6_K(dst []byte, src []float32) {
	for len(src) > 0 {
		b, x := (*[210]byte)(dst), (*[256]float32)(src)
		dst, src = dst[210:], src[256:]
		var scales [16]float64
		most := 0.0
		for g := range scales {
			scales[g] = fitScale(x[16*g:][:16], -32, 31)
			if max(scales[g], -scales[g]) > max(most, -most) {
				most = scales[g]
			}
		}
		d := putFactor(b[208:], most/-128)
		clear(b[:192])
		for g := range scales {
			values := x[16*g:][:16]
			at := nearest(quotient(float32(scales[g]), float64(d)), -128, 127)
			scale, best := at, -1.0
			for s := max(at-1, -128); s <= min(at+1, 127); s++ {
				if off := squaresOff(values, d*float32(s), -32, 31); best < 0 || off < best {
					scale, best = s, off
				}
			}
			b[192+g] = byte(scale)
			step := float64(d * float32(scale))
			for j, v := range values {
				i := 16*g + j
				q := uint8(nearest(quotient(v, step), -32, 31) + 32)
				half, part, at := i/128, i%128/32, i%32
				b[64*half+part%2*32+at] |= q & 15 << (part / 2 * 4)
				b[128+32*half+at] |= q >> 4 << (2 * part)
			}
		}
	}
}
