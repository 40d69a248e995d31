package sample

import "errors"

// The kinds of error that this package returns, wrapped with the value at fault.
var (
	// ErrParams is returned for sampling parameters outside their range.
	ErrParams = errors.New("sampling parameter out of range")
	// ErrAdjustment is returned for a list of adjustments that is out of order, or
	// has one outside the vocabulary or its range.
	ErrAdjustment = errors.New("malformed adjustment")
	// ErrNotFinite is returned for a logit that is NaN or +Inf, and if no allowed token has a logit
	// above -Inf. The model's output is then broken, and no token can be chosen from it.
	ErrNotFinite = errors.New("logits are not finite")
	// ErrEmptyMask is returned for a mask, or a mask and biases, that allow no token
	// of the vocabulary.
	ErrEmptyMask = errors.New("mask allows no token")
	// ErrShape is returned for an empty or too long list of logits, and for a mask shorter than the
	// vocabulary.
	ErrShape = errors.New("wrong shape")
)
