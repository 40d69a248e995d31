package tokenizer

import (
	"errors"
	"strconv"
)

// The errors of this package wrap one of these.
var (
	// ErrUnsupported is wrapped when a tokenizer is well formed but needs a model, component,
	// pattern or pre-tokenizer that this package does not have.
	ErrUnsupported = errors.New("unsupported tokenizer")

	// ErrPreTokenizer is wrapped beside ErrUnsupported when a GGUF file names a pre-tokenizer that this
	// package does not have; [WithPreTokenizer] names another one.
	ErrPreTokenizer = errors.New("unknown pre-tokenizer")

	// ErrInvalid is wrapped when the description of a tokenizer contradicts itself, lacks a
	// necessary part or asks for more memory than its size justifies.
	ErrInvalid = errors.New("invalid tokenizer")
)

// quoted returns text in quotes for an error, shortened when it is long.
func quoted(text string) string {
	const limit = 300
	if len(text) > limit {
		return strconv.Quote(text[:limit]) + "..."
	}
	return strconv.Quote(text)
}
