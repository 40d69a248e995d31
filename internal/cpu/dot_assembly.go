//go:build amd64 || arm64

package cpu

// dotBlocks computes products in blocks of 4 rows by wide tokens, and for the remaining tokens 8
// rows by one. Both sum over whole registers of lanes elements. The rest of k is added one by one
// with each product rounded, because whether a compiler fuses the product with the addition may
// differ.
func dotBlocks(dst, w, x []float32, k, stride, tokens, lanes, wide int, block, row func(dst, w, x *float32, n, stride int)) {
	n := k / lanes * lanes
	t := 0
	for ; n > 0 && t+wide <= tokens; t += wide {
		for r := 0; r < dotRows; r += 4 {
			block(&dst[t*dotRows+r], &w[r*stride], &x[t*stride], n, stride)
		}
	}
	for ; n > 0 && t < tokens; t++ {
		row(&dst[t*dotRows], &w[0], &x[t*stride], n, stride)
	}
	if n == k {
		return
	}
	for t := range tokens {
		for r := range dotRows {
			var sum float32
			if n > 0 {
				sum = dst[t*dotRows+r]
			}
			for i := n; i < k; i++ {
				sum += float32(w[r*stride+i] * x[t*stride+i])
			}
			dst[t*dotRows+r] = sum
		}
	}
}
