package tensor

import "encoding/binary"

// The first block formats of ggml: 32 elements, one scale, and for the _1 formats one minimum.
// Nibbles are split in halves: byte j holds element j in its low and element j+16 in its high
// nibble. The fifth bits of the Q5 formats are 32 consecutive bits, one per element.
//
// Loops read blocks as fixed-size arrays, so that the compiler omits the bounds checks.
// float32(...) around a product keeps it from being fused with the following addition, which would
// round differently on some machines.

// Q4_0 is d f16, nibbles [16]: d * (q-8).
func dequantizeQ4_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[18]byte)(src), (*[32]float32)(dst)
		src, dst = src[18:], dst[32:]
		d := f16At(b[:])
		for j, q := range b[2:18] {
			y[j] = d * float32(int(q&15)-8)
			y[j+16] = d * float32(int(q>>4)-8)
		}
	}
}

// Q4_1 is d f16, m f16, nibbles [16]: d*q + m.
func dequantizeQ4_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[20]byte)(src), (*[32]float32)(dst)
		src, dst = src[20:], dst[32:]
		d, m := f16At(b[:]), f16At(b[2:])
		for j, q := range b[4:20] {
			y[j] = float32(d*float32(q&15)) + m
			y[j+16] = float32(d*float32(q>>4)) + m
		}
	}
}

// Q5_0 is d f16, fifth bits u32, nibbles [16]: d * (q-16).
func dequantizeQ5_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[22]byte)(src), (*[32]float32)(dst)
		src, dst = src[22:], dst[32:]
		d, high := f16At(b[:]), binary.LittleEndian.Uint32(b[2:])
		for j, q := range b[6:22] {
			lo := uint32(q&15) | high>>j&1<<4
			hi := uint32(q>>4) | high>>(j+16)&1<<4
			y[j] = d * float32(int32(lo)-16)
			y[j+16] = d * float32(int32(hi)-16)
		}
	}
}

// Q5_1 is d f16, m f16, fifth bits u32, nibbles [16]: d*q + m.
func dequantizeQ5_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[24]byte)(src), (*[32]float32)(dst)
		src, dst = src[24:], dst[32:]
		d, m, high := f16At(b[:]), f16At(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for j, q := range b[8:24] {
			lo := uint32(q&15) | high>>j&1<<4
			hi := uint32(q>>4) | high>>(j+16)&1<<4
			y[j] = float32(d*float32(lo)) + m
			y[j+16] = float32(d*float32(hi)) + m
		}
	}
}

// Q8_0 is d f16, q i8 [32]: d * q.
func dequantizeQ8_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		b, y := (*[34]byte)(src), (*[32]float32)(dst)
		src, dst = src[34:], dst[32:]
		d := f16At(b[:])
		for j, q := range b[2:34] {
			y[j] = d * float32(int8(q))
		}
	}
}
