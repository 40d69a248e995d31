package sample

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// An Adjustment holds what sampling must know of one token of the vocabulary. The penalties of
// [Params] act only on tokens with an adjustment.
type Adjustment struct {
	Token  int32
	Bias   float32 // added to the token's logit; -Inf forbids the token
	Count  int32   // how often the token was chosen
	Prompt bool    // the token is in the prompt
}

// ValidateAdjustments returns an error for the first adjustment whose values are out of range,
// whose token is outside the vocabulary, or which is out of order: tokens must ascend, without
// duplicates. The error wraps [ErrAdjustment].
func ValidateAdjustments(list []Adjustment, vocab int) error {
	last := int32(-1)
	for i := range list {
		a := &list[i]
		switch {
		case a.Token <= last:
			return fmt.Errorf("sample: adjustment %d is of token %d, after token %d: %w: want tokens in ascending order, none twice, from 0", i, a.Token, last, ErrAdjustment)
		case int(a.Token) >= vocab:
			return fmt.Errorf("sample: adjustment %d is of token %d: %w: the vocabulary has %d", i, a.Token, ErrAdjustment, vocab)
		case !(a.Bias <= math.MaxFloat32):
			return fmt.Errorf("sample: the bias of token %d is %v: %w: want a finite number, or -Inf to forbid the token", a.Token, a.Bias, ErrAdjustment)
		case a.Count < 0 || a.Count == math.MaxInt32:
			return fmt.Errorf("sample: token %d was chosen %d times: %w: want 0 to %d", a.Token, a.Count, ErrAdjustment, math.MaxInt32-1)
		}
		last = a.Token
	}
	return nil
}

// Chosen returns list for a token that was chosen once more. list is not changed.
func Chosen(list []Adjustment, token int32) []Adjustment {
	i, found := slices.BinarySearchFunc(list, token, func(a Adjustment, t int32) int { return cmp.Compare(a.Token, t) })
	if !found {
		return slices.Concat(list[:i], []Adjustment{{Token: token, Count: 1}}, list[i:])
	}
	list = slices.Clone(list)
	list[i].Count = min(list[i].Count, math.MaxInt32-2) + 1
	return list
}

// adjust returns logits after the biases of list and the penalties of p. The result is in the
// sampler's memory if any logit changes. Logits that are not finite stay as they are, to be found
// later.
func (s *Sampler) adjust(logits []float32, p *Params, list []Adjustment, last int32) []float32 {
	if last >= 0 && !p.Penalizes() {
		last = -1 // penalties do not use the counts
	}
	if len(list) == 0 && last < 0 {
		return logits
	}
	s.adjusted = append(s.adjusted[:0], logits...)
	for i := range list {
		a := list[i]
		if a.Token == last {
			a.Count++
			last = -1
		}
		s.adjusted[a.Token] = a.of(s.adjusted[a.Token], p)
	}
	if last >= 0 {
		a := Adjustment{Count: 1}
		s.adjusted[last] = a.of(s.adjusted[last], p)
	}
	return s.adjusted
}

// of returns the model's logit after a's bias and the penalties of p. Conversions around a product
// keep the compiler from fusing it.
func (a *Adjustment) of(logit float32, p *Params) float32 {
	if !(logit >= -math.MaxFloat32 && logit <= math.MaxFloat32) {
		return logit
	}
	if a.Bias < -math.MaxFloat32 {
		return float32(math.Inf(-1))
	}
	logit = finite(logit + a.Bias)
	if p.Repeats() && (a.Prompt || a.Count > 0) {
		if logit > 0 {
			logit = finite(logit / p.Repetition)
		} else {
			logit = finite(float32(logit * p.Repetition))
		}
	}
	if a.Count > 0 {
		logit = finite(logit - float32(p.Frequency*float32(a.Count)))
		logit = finite(logit - p.Presence)
	}
	return logit
}

// finite returns the finite number nearest to v, which must not be NaN.
func finite(v float32) float32 { return max(-math.MaxFloat32, min(v, math.MaxFloat32)) }

// countForbidden returns how many tokens that mask allows are forbidden by a bias.
func countForbidden(mask []uint32, list []Adjustment) int {
	n := 0
	for i := range list {
		if list[i].Bias < -math.MaxFloat32 && allowed(mask, int(list[i].Token)) {
			n++
		}
	}
	return n
}
