package tokenizer

import (
	"errors"
	"strconv"
)

// Every error of this package wraps one of these.
var (
	// ErrUnsupported is wrapped if a tokenizer is well formed but needs a model, component, pattern
	// or pre-tokenizer that this package does not have.
	ErrUnsupported = errors.New("unsupported tokenizer")

	// ErrPreTokenizer is wrapped together with ErrUnsupported if a GGUF file names a pre-tokenizer
	// that this package does not have; [WithPreTokenizer] selects another one.
	ErrPreTokenizer = errors.New("unknown pre-tokenizer")

	// ErrInvalid is wrapped if the description of a tokenizer contradicts itself, lacks a necessary
	// part or asks for more memory than its size justifies.
	ErrInvalid = errors.New("invalid tokenizer")
)

// quoted returns text in quotes for an error. It truncates long text.
func quoted(text string) string {
	const limit = 300
	if len(text) > limit {
		return strconv.Quote(text[:limit]) + "..."
	}
	return strconv.Quote(text)
}
