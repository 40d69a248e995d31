package sample

import (
	"fmt"
	"math"
	"math/bits"
)

// A Sampler chooses tokens. It holds only scratch memory, about 36 bytes per token of the largest
// vocabulary so far: results depend on the arguments alone. The zero Sampler is ready to use. It
// must not be used concurrently. It allocates only for a vocabulary larger than all before.
type Sampler struct {
	Maxima Maxima // nil: [MaximaOf]

	adjusted   []float32 // logits after adjustments, if there are any
	maxima     []float32 // of the logits, by block
	candidates []candidate
	selector   selector
}

// Token chooses the token at absolute position pos of a sequence. logits [vocab] are the model's
// output for it and are not changed. mask, if not nil, has bit i%32 of word i/32 set for each
// allowed token i; bits past the vocabulary are ignored. adjustments must pass
// [ValidateAdjustments]. last, if not negative, is a token that was chosen once more than they
// count. A nil p is greedy.
//
// A token with a logit of -Inf is never chosen. The errors wrap [ErrParams], [ErrAdjustment],
// [ErrShape], [ErrNotFinite] and [ErrEmptyMask]. A NaN or +Inf is an error even if the token is
// forbidden, because it makes the whole output suspect.
func (s *Sampler) Token(logits []float32, p *Params, mask []uint32, adjustments []Adjustment, last int32, pos int) (int32, error) {
	if p == nil {
		p = &Params{}
	}
	if err := p.Validate(); err != nil {
		return 0, err
	}
	if err := checkShape(logits, mask); err != nil {
		return 0, err
	}
	if err := ValidateAdjustments(adjustments, len(logits)); err != nil {
		return 0, err
	}
	if int(last) >= len(logits) {
		return 0, fmt.Errorf("sample: the last token is %d: %w: the vocabulary has %d", last, ErrAdjustment, len(logits))
	}
	logits = s.adjust(logits, p, adjustments, last)
	best, err := s.largest(logits, mask, adjustments)
	if err != nil {
		return 0, err
	}
	if p.Temperature == 0 {
		return best, nil
	}
	sc := newScale(logits[best], p.Temperature, len(logits))
	var c []candidate
	if p.TopK > 0 && p.TopK < len(logits) {
		c = s.likeliest(logits, mask, p.TopK)
		for i, x := range c {
			c[i].weight = sc.weight(logits[x.id()])
		}
	} else {
		c = s.weighted(logits, mask, sc)
	}
	heaviest := uint64(1) << sc.shift
	if p.Typical > 0 && p.Typical < 1 {
		c = s.typical(c, logits, sc, p.Typical)
		heaviest = largestWeight(c)
	}
	if p.TopP > 0 && p.TopP < 1 {
		c = keepThrough(c, s.selector.crossing(c, ceilProduct(p.TopP, totalWeight(c))))
	}
	if p.MinP > 0 {
		c = keepWeight(c, ceilProduct(p.MinP, heaviest))
	}
	u := uniform(p.Seed, p.Choice, uint64(pos))
	t, _ := bits.Mul64(u, totalWeight(c))
	return s.selector.crossing(c, t+1).id(), nil
}

// checkShape validates the lengths of logits and mask.
func checkShape(logits []float32, mask []uint32) error {
	if len(logits) == 0 {
		return fmt.Errorf("sample: there are no logits: %w: want one for each token of the vocabulary", ErrShape)
	}
	if uint64(len(logits)) > math.MaxInt32 {
		return fmt.Errorf("sample: %d logits: %w: want at most %d, the range of token ids", len(logits), ErrShape, math.MaxInt32)
	}
	if words := (len(logits) + 31) / 32; mask != nil && len(mask) < words {
		return fmt.Errorf("sample: the mask has %d words: %w: want %d for %d tokens", len(mask), ErrShape, words, len(logits))
	}
	return nil
}

// largest returns the allowed token with the largest logit, the lowest id among equals. It checks
// all logits, and sets s.maxima for likeliest.
func (s *Sampler) largest(logits []float32, mask []uint32, adjustments []Adjustment) (int32, error) {
	if err := s.findMaxima(logits); err != nil {
		return 0, err
	}
	found, best := -1, float32(math.Inf(-1))
	for b, top := range s.maxima {
		if top > best && mask != nil {
			top = allowedMaximum(logits, mask, b, top)
		}
		if top > best {
			best = top
			for found = b * Block; logits[found] != top || !allowed(mask, found); {
				found++
			}
		}
	}
	if found < 0 {
		n := countAllowed(mask, len(logits)) - countForbidden(mask, adjustments)
		if n == 0 {
			return 0, fmt.Errorf("sample: none of the %d tokens is allowed: %w: a mask needs at least one bit set, of a token that no bias of -Inf forbids", len(logits), ErrEmptyMask)
		}
		return 0, fmt.Errorf("sample: the logits of all %d allowed tokens, of %d, are -Inf: %w: at least one must be larger", n, len(logits), ErrNotFinite)
	}
	return int32(found), nil
}

// weighted returns the allowed tokens with a weight above 0, in ascending id.
func (s *Sampler) weighted(logits []float32, mask []uint32, sc scale) []candidate {
	c := s.empty(len(logits))
	for i, v := range logits {
		if !allowed(mask, i) || v < -math.MaxFloat32 {
			continue
		}
		if w := sc.weight(v); w > 0 {
			c = append(c, candidate{rank(v, int32(i)), w})
		}
	}
	return c
}

// likeliest returns the k likeliest allowed tokens, or all if there are fewer, in ascending id,
// each with the weight 1. s.maxima must hold the maxima of logits.
func (s *Sampler) likeliest(logits []float32, mask []uint32, k int) []candidate {
	if mask != nil {
		for b, top := range s.maxima {
			s.maxima[b] = allowedMaximum(logits, mask, b, top)
		}
	}
	// The k-th largest of the blocks' maxima is at most the k-th largest logit: this bound excludes
	// most of a large vocabulary.
	least := float32(-math.MaxFloat32)
	c := s.empty(len(logits))
	for b, top := range s.maxima {
		if top >= least {
			c = append(c, candidate{rank(top, int32(b)), 1})
		}
	}
	if k <= len(c) {
		least = s.maxima[s.selector.crossing(c, uint64(k)).id()]
	}
	c = c[:0]
	for b, top := range s.maxima {
		if top < least {
			continue
		}
		first := b * Block
		for i, v := range logits[first:min(len(logits), first+Block)] {
			if v >= least && allowed(mask, first+i) {
				c = append(c, candidate{rank(v, int32(first+i)), 1})
			}
		}
	}
	if k < len(c) {
		// All weights are 1, so a sum of weights is a count.
		c = keepThrough(c, s.selector.crossing(c, uint64(k)))
	}
	return c
}

// empty returns the scratch list of candidates, empty, with capacity for vocab of them.
func (s *Sampler) empty(vocab int) []candidate {
	if cap(s.candidates) < vocab {
		s.candidates = make([]candidate, 0, vocab)
	}
	return s.candidates[:0]
}

// keepWeight removes, in place, the candidates with a weight below least.
func keepWeight(c []candidate, least uint64) []candidate {
	kept := c[:0]
	for _, x := range c {
		if x.weight >= least {
			kept = append(kept, x)
		}
	}
	return kept
}

func allowed(mask []uint32, i int) bool {
	return mask == nil || mask[i>>5]>>(i&31)&1 != 0
}

// countAllowed returns how many of vocab tokens mask allows.
func countAllowed(mask []uint32, vocab int) int {
	if mask == nil {
		return vocab
	}
	n := 0
	for i := range vocab {
		if allowed(mask, i) {
			n++
		}
	}
	return n
}
