package sample

import (
	"fmt"
	"math"
)

// An Adjustment is what is known of one token of the vocabulary when another one is
// to be chosen. The penalties of [Params] act on tokens that have one.
type Adjustment struct {
	Token  int32
	Bias   float32 // added to the token's logit; -Inf forbids the token
	Count  int32   // how often the token was chosen
	Prompt bool    // the token is in the prompt
}

// ValidateAdjustments reports the first of list that is not one of a vocabulary of
// vocab tokens or not in its place: they ascend by Token, no token twice. The error
// wraps [ErrAdjustment].
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
		case a.Count < 0:
			return fmt.Errorf("sample: token %d was chosen %d times: %w: want at least 0", a.Token, a.Count, ErrAdjustment)
		}
		last = a.Token
	}
	return nil
}
