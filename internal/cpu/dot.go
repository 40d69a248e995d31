package cpu

// The shape of one call of a dots function.
const (
	dotRows   = 8  // rows of weights
	dotTokens = 16 // rows of activations, at most
)

// A dots function multiplies 8 rows of weights, w [8, k], with tokens rows of activations, x
// [tokens, k], all rows stride elements apart: dst[t*8+r] is the sum of w[r][i]*x[t][i]. The bits
// of a sum depend only on its two rows.
type dots func(dst, w, x []float32, k, stride, tokens int)

func dotsGeneric(dst, w, x []float32, k, stride, tokens int) {
	for t := range tokens {
		for r := range dotRows {
			dst[t*dotRows+r] = dot(w[r*stride:][:k], x[t*stride:][:k])
		}
	}
}

// segment is the length of the pieces of a sum over K: each is summed from zero, and the sums are
// added in ascending order.
const segment = 256

// dot returns the sum of w[i]*x[i]. The order of additions depends only on len(w).
func dot(w, x []float32) float32 {
	var sum float32
	for len(w) > segment {
		sum += dotSegment(w[:segment], x[:segment])
		w, x = w[segment:], x[segment:]
	}
	return sum + dotSegment(w, x)
}

// dotSegment sums in four lanes; lane i adds every fourth product.
func dotSegment(w, x []float32) float32 {
	var a, b, c, d float32
	for len(w) >= 4 && len(x) >= 4 {
		a += w[0] * x[0]
		b += w[1] * x[1]
		c += w[2] * x[2]
		d += w[3] * x[3]
		w, x = w[4:], x[4:]
	}
	for i, v := range w {
		a += v * x[i]
	}
	return (a + b) + (c + d)
}
