package hub

import "errors"

var (
	// ErrNoTokenizer reports that a model has no usable tokenizer.
	ErrNoTokenizer = errors.New("no usable tokenizer")
	// ErrNoTemplate reports that a model has no usable chat template.
	ErrNoTemplate = errors.New("no chat template")
	// ErrOptions reports a request for a pre-tokenizer that is unknown or not applicable.
	ErrOptions = errors.New("invalid option")
)
