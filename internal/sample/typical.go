package sample

import "math/bits"

// informationBits is the number of binary places of a token's information.
const informationBits = 20

// information returns floor(2^20 * (best-logit)/temperature): how much more information than the
// likeliest token this one has, in nats. Its weight must not be 0.
func (s scale) information(logit float32) uint64 {
	x := (float64(logit) - s.best) / s.temperature
	return uint64(-x * (1 << informationBits))
}

// typical keeps, in place, the candidates whose information is nearest to the mean, until they have
// the given share of the total weight. The candidates are tokens of logits; at least one has a
// weight above 0.
func (s *Sampler) typical(c []candidate, logits []float32, sc scale, share float32) []candidate {
	c = keepWeight(c, 1)
	var sum, total uint64
	for _, x := range c {
		hi, lo := bits.Mul64(x.weight, sc.information(logits[x.id()]))
		sum += hi<<(64-informationBits) | lo>>informationBits
		total += x.weight
	}
	hi, lo := bits.Mul64(sum, 1<<informationBits)
	mean, _ := bits.Div64(hi, lo, total)

	// While candidates are selected by distance, their ranks are their distances.
	for i, x := range c {
		d := sc.information(logits[x.id()]) - mean
		if int64(d) < 0 {
			d = -d
		}
		c[i].rank = d<<32 | uint64(uint32(x.id()))
	}
	c = keepThrough(c, s.selector.crossing(c, ceilProduct(share, total)))
	for i, x := range c {
		c[i].rank = rank(logits[x.id()], x.id())
	}
	return c
}

// largestWeight returns the largest weight in c.
func largestWeight(c []candidate) uint64 {
	var most uint64
	for _, x := range c {
		most = max(most, x.weight)
	}
	return most
}
