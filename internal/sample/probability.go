package sample

import "math"

// LogProbability is the natural logarithm of token id's probability under the
// softmax of logits [vocab], as the model means it: before adjustments, masks,
// temperature and filters, so that it tells how likely the model held a token however
// that was chosen. The logits are those for which [Sampler.Token] returned a token, and
// id is one of the vocabulary's.
//
// It is l - m - log(sum of exp(l' - m)) in float64, l being the token's logit, m the
// largest and l' each in ascending id. Unlike a choice it is not defined to the bit:
// a device may add in another order.
func LogProbability(logits []float32, id int32) float64 {
	top, logSum := softmax(logits)
	return float64(logits[id]) - top - logSum
}

// softmax returns the largest of logits and the logarithm of the sum of what they
// become when that is subtracted and they are exponentiated.
func softmax(logits []float32) (top, logSum float64) {
	top = math.Inf(-1)
	for _, v := range logits {
		top = max(top, float64(v))
	}
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top, math.Log(sum)
}
