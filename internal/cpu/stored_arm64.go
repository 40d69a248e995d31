package cpu

import "github.com/realizar/realizar/tensor"

var storedNEON = map[tensor.DType]storedDots{
	tensor.F32:  storedRows(neonLanes, 4, storedF32, dot8F32NEON),
	tensor.F16:  storedRows(neonLanes, 2, storedF16, dot8F16NEON),
	tensor.BF16: storedRows(neonLanes, 2, storedBF16, dot8BF16NEON),
}
