//go:build amd64 || arm64

package cpu

import "unsafe"

type (
	scoreLoop    func(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)
	weightedLoop func(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)
)

// assembled returns the kernels for a cache with numbers of size bytes.
func assembled(size int, scores scoreLoop, weighted weightedLoop) cacheKernels {
	return cacheKernels{
		scores: func(score, q []float32, rows, qWidth int, k *stretch, dim int) {
			scores(&score[0], &q[0], &k.numbers[0], unsafe.SliceData(k.scales), &k.next[0], dim, k.width*size, k.n, rows, 4*qWidth)
		},
		weighted: func(sum, weight []float32, rows, width int, v *stretch, dim int) {
			weighted(&sum[0], &weight[0], &v.numbers[0], unsafe.SliceData(v.scales), &v.next[0], dim, v.width*size, v.n, rows, 4*width)
		},
	}
}

func summedPositives(of func(sum, score, weight *float32, n, rows int)) func(sum, score, weight []float32, n int) {
	return func(sum, score, weight []float32, n int) { of(&sum[0], &score[0], &weight[0], n, len(weight)) }
}
