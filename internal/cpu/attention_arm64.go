package cpu

import "github.com/realizar/realizar/tensor"

var attentionNEON = attentionKernels{
	caches: map[tensor.DType]cacheKernels{
		tensor.F32:     assembled(4, scoresF32NEON, weightedF32NEON),
		tensor.F16:     assembled(2, scoresF16NEON, weightedF16NEON),
		tensor.Q8_0:    assembled(1, scoresQ8NEON, weightedQ8NEON),
		tensor.F8_E4M3: assembled(1, scoresF8NEON, weightedF8NEON),
	},
	softWeights: func(score []float32, n, rows int, top, total []float32) {
		softWeightsNEON(&score[0], n, rows, &top[0], &total[0])
	},
	blend: func(y, x []float32, a, b float32) { blendNEON(&y[0], &x[0], len(y), a, b) },
	scale: func(y, x []float32, a float32) { scaleRowNEON(&y[0], &x[0], len(y), a) },
	halve: func(y []uint16, x []float32) {
		if n := min(len(x), len(y)); n > 0 {
			halveNEON(&y[0], &x[0], n)
		}
	},
	positives: summedPositives(positivesNEON),
}
