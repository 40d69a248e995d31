package eval

import (
	"fmt"
	"math"
	"slices"
)

// A Divergence measures how far a model's predictions are from those of a reference, at the same
// places of a text. The zero Divergence has no places.
type Divergence struct {
	kl   []float64 // by place
	same int       // places at which both have the same likeliest token
	p, q []float64 // scratch memory
}

// Add adds a place with the reference's logits and the model's, [vocab] each.
func (d *Divergence) Add(reference, model []float32) error {
	if len(reference) != len(model) {
		return fmt.Errorf("eval: the reference has %d logits, the model %d", len(reference), len(model))
	}
	d.p, d.q = logProbabilities(d.p, reference), logProbabilities(d.q, model)
	kl := 0.0
	for i, p := range d.p {
		if p > math.Inf(-1) {
			kl += math.Exp(p) * (p - d.q[i])
		}
	}
	d.kl = append(d.kl, max(0, kl)) // negative values are rounding errors
	if likeliest(reference) == likeliest(model) {
		d.same++
	}
	return nil
}

// logProbabilities returns the logarithms of the softmax of logits, in dst if it is large enough.
func logProbabilities(dst []float64, logits []float32) []float64 {
	dst = slices.Grow(dst[:0], len(logits))[:len(logits)]
	top := float64(slices.Max(logits))
	sum := 0.0
	for i, v := range logits {
		dst[i] = float64(v) - top
		sum += math.Exp(dst[i])
	}
	log := math.Log(sum)
	for i := range dst {
		dst[i] -= log
	}
	return dst
}

// likeliest returns the token with the largest logit, the first of equals.
func likeliest(logits []float32) int {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return best
}

// Places returns the number of places.
func (d *Divergence) Places() int { return len(d.kl) }

// Mean returns the mean Kullback-Leibler divergence of the model from the reference in nats: the
// sum of p ln(p/q) over the vocabulary, where p are the reference's probabilities and q the
// model's.
func (d *Divergence) Mean() float64 {
	sum := 0.0
	for _, kl := range d.kl {
		sum += kl
	}
	return sum / float64(len(d.kl))
}

// Quantile returns the divergence that a part of the places, from 0 to 1, does not exceed.
func (d *Divergence) Quantile(part float64) float64 {
	slices.Sort(d.kl)
	i := int(math.Ceil(part*float64(len(d.kl)))) - 1
	return d.kl[min(max(i, 0), len(d.kl)-1)]
}

// Agreement returns the part of the places, from 0 to 1, at which both have the same likeliest
// token.
func (d *Divergence) Agreement() float64 { return float64(d.same) / float64(len(d.kl)) }
