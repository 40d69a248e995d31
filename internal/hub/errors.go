package hub

import "errors"

var (
	// ErrNoTokenizer says that there is no tokenizer that can be used.
	ErrNoTokenizer = errors.New("no usable tokenizer")
	// ErrNoTemplate says that there is no chat template that can be used.
	ErrNoTemplate = errors.New("no chat template")
	// ErrOptions says that a pre-tokenizer was asked for that cannot be had.
	ErrOptions = errors.New("invalid option")
)
