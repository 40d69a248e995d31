package cpu

import "github.com/realizar/realizar/tensor"

var storedAVX2 = map[tensor.DType]storedDots{
	tensor.F32:  storedRows(8, 4, storedF32, dot8F32AVX2),
	tensor.F16:  storedRows(8, 2, storedF16, dot8F16AVX2),
	tensor.BF16: storedRows(8, 2, storedBF16, dot8BF16AVX2),
}

var storedAVX512 = map[tensor.DType]storedDots{
	tensor.F32:  storedRows(16, 4, storedF32, dot8F32AVX512),
	tensor.F16:  storedRows(16, 2, storedF16, dot8F16AVX512),
	tensor.BF16: storedRows(16, 2, storedBF16, dot8BF16AVX512),
}
