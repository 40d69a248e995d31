package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/nearest"
)

// modelsBPE are the values of tokenizer.ggml.model that use tokenizer.ggml.pre.
var modelsBPE = []string{"gpt2"}

// WithPreTokenizer returns m with the pre-tokenizer replaced by name, for a file that names none or
// one that [FromGGUF] does not know. The error wraps [ErrInvalid] if the file's tokenizer does not
// use a pre-tokenizer name, and [ErrPreTokenizer] if name is unknown.
func WithPreTokenizer(m Metadata, name string) (Metadata, error) {
	kind, ok := m.String(keyModel)
	if !ok || !slices.Contains(modelsBPE, kind) {
		return nil, fmt.Errorf("%w: pre-tokenizer %s: the file's tokenizer has none to choose: %s is %s, and only %s has",
			ErrInvalid, quoted(name), keyModel, quoted(kind), strings.Join(modelsBPE, ", "))
	}
	if _, ok := ggufPreTokenizers[name]; !ok {
		return nil, unknownPreTokenizer(name)
	}
	return chosenPreTokenizer{m, name}, nil
}

// chosenPreTokenizer is metadata with another pre-tokenizer.
type chosenPreTokenizer struct {
	Metadata
	name string
}

func (c chosenPreTokenizer) String(key string) (string, bool) {
	if key == keyPre {
		return c.name, true
	}
	return c.Metadata.String(key)
}

// unknownPreTokenizer returns the error for an unknown name. It lists the nearest known names.
func unknownPreTokenizer(name string) error {
	return fmt.Errorf("%w: %w %s; the nearest known are %s",
		ErrUnsupported, ErrPreTokenizer, quoted(name), strings.Join(nearest.Names(name, PreTokenizers(), 5), ", "))
}

// PreTokenizers returns the names that [WithPreTokenizer] accepts, sorted.
func PreTokenizers() []string { return slices.Sorted(maps.Keys(ggufPreTokenizers)) }
