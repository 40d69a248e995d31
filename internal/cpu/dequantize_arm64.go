package cpu

import "github.com/realizar/realizar/tensor"

var rowsNEON = map[tensor.DType]dequantizer{
	tensor.F32:  rowF32,
	tensor.F16:  wholeEights(tensor.F16, f16NEON),
	tensor.BF16: wholeEights(tensor.BF16, bf16NEON),
	tensor.Q8_0: func(dst []float32, src []byte) { q8_0NEON(&dst[0], &src[0], len(dst)/32) },
	tensor.Q4_0: func(dst []float32, src []byte) { q4_0NEON(&dst[0], &src[0], len(dst)/32) },
	tensor.Q4_K: func(dst []float32, src []byte) { q4_KNEON(&dst[0], &src[0], len(dst)/256) },
	tensor.Q5_K: func(dst []float32, src []byte) { q5_KNEON(&dst[0], &src[0], len(dst)/256) },
	tensor.Q6_K: func(dst []float32, src []byte) { q6_KNEON(&dst[0], &src[0], len(dst)/256) },
}
