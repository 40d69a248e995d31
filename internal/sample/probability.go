package sample

import "math"

// LogProbability returns the natural logarithm of token id's probability under the softmax of
// logits [vocab], the model's output before adjustments, masks, temperature and filters. It tells
// how likely the token was to the model, however it was chosen. [Sampler.Token] must have returned
// a token for the logits, and id must be in the vocabulary.
//
// It is l - m - log(sum of exp(l' - m)) in float64, where l is the token's logit, m the largest,
// and l' each logit in ascending id. It is not defined to the bit: a device may add in another
// order.
func LogProbability(logits []float32, id int32) float64 {
	top, logSum := softmax(logits)
	return float64(logits[id]) - top - logSum
}

// softmax returns the largest logit top and the logarithm of the sum of exp(l - top) over all
// logits l.
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
