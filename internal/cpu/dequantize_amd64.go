package cpu

import "github.com/realizar/realizar/tensor"

// rowsAVX2 are the dequantizers for processors with AVX2 and F16C.
var rowsAVX2 = map[tensor.DType]dequantizer{
	tensor.F32:  rowF32,
	tensor.F16:  wholeEights(tensor.F16, f16AVX2),
	tensor.BF16: wholeEights(tensor.BF16, bf16AVX2),
	tensor.Q8_0: func(dst []float32, src []byte) { q8_0AVX2(&dst[0], &src[0], len(dst)/32) },
	tensor.Q4_0: func(dst []float32, src []byte) { q4_0AVX2(&dst[0], &src[0], len(dst)/32) },
	tensor.Q4_K: rowQ4_K,
	tensor.Q5_K: rowQ5_K,
	tensor.Q6_K: rowQ6_K,
}

func rowQ4_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[144:] {
		scales := scalesK4(src)
		q4_KAVX2(&dst[0], &scales[0][0], &src[16])
	}
}

func rowQ5_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[176:] {
		scales := scalesK4(src)
		q5_KAVX2(&dst[0], &scales[0][0], &src[16], &src[48])
	}
}

func rowQ6_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[210:] {
		d := half(src[208:])
		var scales [16]float32
		for g, s := range src[192:208] {
			scales[g] = d * float32(int8(s))
		}
		q6_KAVX2(&dst[0], &scales[0], &src[0], &src[128])
	}
}
