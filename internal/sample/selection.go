package sample

import (
	"math"
	"math/bits"
)

// A candidate is a token that may be chosen.
type candidate struct {
	rank   uint64 // ascending rank is descending logit, then ascending id
	weight uint64
}

// rank returns one integer for a logit, which must not be NaN, and a token id: the less likely the
// token, the larger the rank.
func rank(logit float32, id int32) uint64 {
	b := math.Float32bits(logit)
	if b == 1<<31 {
		b = 0 // -0 equals 0, and the id decides
	}
	// The bits of positive numbers ascend with their value, so they are inverted. Those of negative
	// numbers, with the top bit set, already descend.
	negative := uint32(int32(b) >> 31)
	return uint64(b^(^negative>>1))<<32 | uint64(uint32(id))
}

func (c candidate) id() int32 { return int32(uint32(c.rank)) }

// digitBits is how many bits of the ranks one round of a selection examines. The 16 KiB of sums fit
// in the first-level cache.
const digitBits = 11

// A selector finds a candidate by its place in the ranking without sorting.
type selector struct {
	sums [1 << digitBits]uint64
	part []candidate // the candidates of the current bucket
}

// crossing returns the candidate at which the running sum of weights, in ascending rank, first
// reaches target. The weights of c must sum to at least target, which is at least 1. c may be in
// any order and is not changed.
//
// It is a radix selection: a round sums weights by the leading bits of the ranks, finds the bucket
// in which the sum reaches target, and continues inside the bucket. The ranks are distinct and have
// 64 bits, so that six rounds suffice.
func (s *selector) crossing(c []candidate, target uint64) candidate {
	for len(c) > 1 {
		lo, hi := c[0].rank, c[0].rank
		for _, x := range c[1:] {
			lo, hi = min(lo, x.rank), max(hi, x.rank)
		}
		width := max(0, bits.Len64(hi-lo)-digitBits)

		clear(s.sums[:])
		for _, x := range c {
			s.sums[(x.rank-lo)>>width] += x.weight
		}
		bucket := 0
		for s.sums[bucket] < target {
			target -= s.sums[bucket]
			bucket++
		}

		// From the second round on, c is s.part itself: writes never overtake reads.
		part := s.part[:0]
		for _, x := range c {
			if (x.rank-lo)>>width == uint64(bucket) {
				part = append(part, x)
			}
		}
		s.part, c = part, part
	}
	return c[0]
}

// keepThrough removes, in place, the candidates ranked after last.
func keepThrough(c []candidate, last candidate) []candidate {
	kept := c[:0]
	for _, x := range c {
		if x.rank <= last.rank {
			kept = append(kept, x)
		}
	}
	return kept
}

// totalWeight returns the sum of the weights of c.
func totalWeight(c []candidate) uint64 {
	var sum uint64
	for _, x := range c {
		sum += x.weight
	}
	return sum
}
