package sample

import (
	"math"
	"slices"
)

// A TopToken is a token and its [LogProbability].
type TopToken struct {
	Token          int32
	LogProbability float64
}

// Top writes the k likeliest tokens of logits to dst, by descending logit, the lower id first among
// equals, and returns them. Tokens with a logit of -Inf are left out, so there may be fewer than k.
// It allocates only if dst has a capacity below k. [Sampler.Token] must have returned a token for
// the logits.
func Top(logits []float32, k int, dst []TopToken) []TopToken {
	dst = dst[:0]
	k = min(k, len(logits))
	if k <= 0 {
		return dst
	}
	dst = slices.Grow(dst, k)
	// A heap with the least likely kept token on top.
	less := func(i, j int) bool {
		a, b := logits[dst[i].Token], logits[dst[j].Token]
		return a < b || a == b && dst[i].Token > dst[j].Token
	}
	down := func(i, n int) {
		for {
			least := i
			for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
				if less(child, least) {
					least = child
				}
			}
			if least == i {
				return
			}
			dst[i], dst[least] = dst[least], dst[i]
			i = least
		}
	}
	heapify := func() {
		for i := len(dst)/2 - 1; i >= 0; i-- {
			down(i, len(dst))
		}
	}
	for id, v := range logits {
		switch {
		case v < -math.MaxFloat32:
		case len(dst) < k:
			if dst = append(dst, TopToken{Token: int32(id)}); len(dst) == k {
				heapify()
			}
		case v > logits[dst[0].Token]:
			dst[0].Token = int32(id)
			down(0, k)
		}
	}
	if len(dst) < k {
		heapify()
	}
	for n := len(dst) - 1; n > 0; n-- {
		dst[0], dst[n] = dst[n], dst[0]
		down(0, n)
	}
	top, logSum := softmax(logits)
	for i := range dst {
		dst[i].LogProbability = float64(logits[dst[i].Token]) - top - logSum
	}
	return dst
}
