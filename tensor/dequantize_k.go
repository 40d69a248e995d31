package tensor

// The K formats of ggml: super-blocks of 256 elements. Their groups of 16 or 32 have small integer
// scales (and minima) that share one or two f16 factors.

// Q2_K is (scale, min) nibbles [16], 2-bit q [64], d f16, dmin f16: groups of 16, d*scale*q -
// dmin*min. A run of 32 bytes holds four runs of 32 elements; two bits of each byte belong to one
// run.
func dequantizeQ2_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[84]byte)(src), (*[256]float32)(dst)
		src, dst = src[84:], dst[256:]
		d, dmin := f16At(b[80:]), f16At(b[82:])
		for group, sc := range b[:16] {
			// Group g has elements 16g to 16g+15. They are in half g/8 of the block, in two bits
			// (g/2)%4 of the bytes, in half g%2 of the 32 bytes.
			scale, low := d*float32(sc&15), dmin*float32(sc>>4)
			qs := b[16+group/8*32+group%2*16:][:16]
			out := y[group*16:][:16]
			shift := uint(group / 2 % 4 * 2)
			for j, q := range qs {
				out[j] = float32(scale*float32(q>>shift&3)) - low
			}
		}
	}
}

// Q3_K is third bits [32], low 2-bit q [64], 6-bit scales [12], d f16: groups of 16, d*(scale-32) *
// (q-4). The 2-bit parts are laid out as in Q2_K; the third bit of element i is bit i/32 of byte
// i%32. Of the 16 scales, byte j of the first 8 holds the low nibbles of scales j and j+8, and byte
// 8+j%4 holds the upper two bits of scale j at bit j/4*2.
func dequantizeQ3_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[110]byte)(src), (*[256]float32)(dst)
		src, dst = src[110:], dst[256:]
		d := f16At(b[108:])
		scales := b[96:108]
		for group := range 16 {
			sc := scales[group%8] >> (group / 8 * 4) & 15
			sc |= scales[8+group%4] >> (group / 4 * 2) & 3 << 4
			scale := d * float32(int(sc)-32)
			high := b[group%2*16:][:16]
			qs := b[32+group/8*32+group%2*16:][:16]
			out := y[group*16:][:16]
			shift, bit := uint(group/2%4*2), uint(group/2)
			for j, q := range qs {
				v := int(q>>shift&3) | int(high[j]>>bit&1)<<2
				out[j] = scale * float32(v-4)
			}
		}
	}
}

// scaleMinK4 returns 6-bit scale and minimum j of the 8 pairs that Q4_K and Q5_K pack into 12
// bytes. Those of the first four are in the low 6 bits of bytes j and j+4. Those of the last four
// have their low nibbles in byte j+4 and their upper two bits in the upper two bits of bytes j-4
// and j.
func scaleMinK4(j int, b *[12]byte) (scale, low uint8) {
	if j < 4 {
		return b[j] & 63, b[j+4] & 63
	}
	return b[j+4]&15 | b[j-4]>>6<<4, b[j+4]>>4 | b[j]>>6<<4
}

// Q4_K is d f16, dmin f16, scales and minima [12], nibbles [128]: groups of 32, d*scale*q -
// dmin*min. A run of 32 bytes holds two groups, the first one in the low nibbles.
func dequantizeQ4_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[144]byte)(src), (*[256]float32)(dst)
		src, dst = src[144:], dst[256:]
		d, dmin := f16At(b[:]), f16At(b[2:])
		packed := (*[12]byte)(b[4:])
		for pair := range 4 {
			sc0, m0 := scaleMinK4(2*pair, packed)
			sc1, m1 := scaleMinK4(2*pair+1, packed)
			d0, low0 := d*float32(sc0), dmin*float32(m0)
			d1, low1 := d*float32(sc1), dmin*float32(m1)
			qs := (*[32]byte)(b[16+32*pair:])
			out := (*[64]float32)(y[64*pair:])
			for j, q := range qs {
				out[j] = float32(d0*float32(q&15)) - low0
				out[j+32] = float32(d1*float32(q>>4)) - low1
			}
		}
	}
}

// Q5_K is d f16, dmin f16, scales and minima [12], fifth bits [32], nibbles [128]. It is like Q4_K;
// the fifth bit of element j of group g is bit g of byte j.
func dequantizeQ5_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[176]byte)(src), (*[256]float32)(dst)
		src, dst = src[176:], dst[256:]
		d, dmin := f16At(b[:]), f16At(b[2:])
		packed := (*[12]byte)(b[4:])
		high := (*[32]byte)(b[16:])
		for pair := range 4 {
			sc0, m0 := scaleMinK4(2*pair, packed)
			sc1, m1 := scaleMinK4(2*pair+1, packed)
			d0, low0 := d*float32(sc0), dmin*float32(m0)
			d1, low1 := d*float32(sc1), dmin*float32(m1)
			qs := (*[32]byte)(b[48+32*pair:])
			out := (*[64]float32)(y[64*pair:])
			for j, q := range qs {
				h := high[j] >> (2 * pair)
				out[j] = float32(d0*float32(q&15|h&1<<4)) - low0
				out[j+32] = float32(d1*float32(q>>4|h>>1&1<<4)) - low1
			}
		}
	}
}

// Q6_K is low nibbles [128], upper two bits [64], i8 scales [16], d f16: groups of 16, d*scale *
// (q-32). Each half of 128 elements has 64 bytes of nibbles and 32 bytes of upper bits. Elements j,
// j+32, j+64 and j+96 have the low nibbles of bytes j and j+32, then their high nibbles, and the
// four pairs of bits of byte j.
func dequantizeQ6_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[210]byte)(src), (*[256]float32)(dst)
		src, dst = src[210:], dst[256:]
		d := f16At(b[208:])
		for half := range 2 {
			low := (*[64]byte)(b[64*half:])
			high := (*[32]byte)(b[128+32*half:])
			scales := (*[8]byte)(b[192+8*half:])
			out := (*[128]float32)(y[128*half:])
			for part := range 2 {
				d0 := d * float32(int8(scales[part]))
				d1 := d * float32(int8(scales[part+2]))
				d2 := d * float32(int8(scales[part+4]))
				d3 := d * float32(int8(scales[part+6]))
				for j := 16 * part; j < 16*part+16; j++ {
					l0, l1, h := low[j], low[j+32], high[j]
					out[j] = d0 * float32(int(l0&15|h&3<<4)-32)
					out[j+32] = d1 * float32(int(l1&15|h>>2&3<<4)-32)
					out[j+64] = d2 * float32(int(l0>>4|h>>4&3<<4)-32)
					out[j+96] = d3 * float32(int(l1>>4|h>>6<<4)-32)
				}
			}
		}
	}
}

// [Format.Groups] of the K formats.

func groupsQ2_K(scale, low *[16]float32, b []byte) {
	d, dmin := f16At(b[80:]), f16At(b[82:])
	for g, sc := range b[:16] {
		scale[g], low[g] = d*float32(sc&15), -(dmin * float32(sc>>4))
	}
}

func groupsQ3_K(scale *[16]float32, b []byte) {
	d, scales := f16At(b[108:]), b[96:108]
	for g := range scale {
		sc := scales[g%8]>>(g/8*4)&15 | scales[8+g%4]>>(g/4*2)&3<<4
		scale[g] = d * float32(int(sc)-32)
	}
}

func groupsK4(scale, low *[16]float32, b []byte) {
	d, dmin := f16At(b), f16At(b[2:])
	for g := range 8 {
		sc, m := scaleMinK4(g, (*[12]byte)(b[4:]))
		scale[g], low[g] = d*float32(sc), -(dmin * float32(m))
	}
}

func groupsQ6_K(scale *[16]float32, b []byte) {
	d := f16At(b[208:])
	for g, sc := range b[192:208] {
		scale[g] = d * float32(int8(sc))
	}
}
