package cpu

import "github.com/realizar/realizar/tensor"

func halve(y []uint16, x []float32) {
	if n := min(len(x), len(y)); n > 0 {
		halveAVX2(&y[0], &x[0], n)
	}
}

var attentionAVX2 = attentionKernels{
	caches: map[tensor.DType]cacheKernels{
		tensor.F32:     assembled(4, scoresF32AVX2, weightedF32AVX2),
		tensor.F16:     assembled(2, scoresF16AVX2, weightedF16AVX2),
		tensor.Q8_0:    assembled(1, scoresQ8AVX2, weightedQ8AVX2),
		tensor.F8_E4M3: assembled(1, scoresF8AVX2, weightedF8AVX2),
	},
	softWeights: func(score []float32, n, rows int, top, total []float32) {
		softWeightsAVX2(&score[0], n, rows, &top[0], &total[0])
	},
	blend: func(y, x []float32, a, b float32) { blendAVX2(&y[0], &x[0], len(y), a, b) },
	scale: func(y, x []float32, a float32) { scaleRowAVX2(&y[0], &x[0], len(y), a) },
	halve: halve, positives: summedPositives(positivesAVX2),
}

var attentionAVX512 = attentionKernels{
	caches: map[tensor.DType]cacheKernels{
		tensor.F32:     assembled(4, scoresF32AVX512, weightedF32AVX512),
		tensor.F16:     assembled(2, scoresF16AVX512, weightedF16AVX512),
		tensor.Q8_0:    assembled(1, scoresQ8AVX512, weightedQ8AVX512),
		tensor.F8_E4M3: assembled(1, scoresF8AVX512, weightedF8AVX512),
	},
	softWeights: func(score []float32, n, rows int, top, total []float32) {
		softWeightsAVX512(&score[0], n, rows, &top[0], &total[0])
	},
	blend: func(y, x []float32, a, b float32) { blendAVX512(&y[0], &x[0], len(y), a, b) },
	scale: func(y, x []float32, a float32) { scaleRowAVX512(&y[0], &x[0], len(y), a) },
	halve: halve, positives: summedPositives(positivesAVX512),
}
