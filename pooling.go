package realizar

import (
	"slices"

	"github.com/realizar/realizar/internal/hub"
)

// Pooling says how the hidden states of a text's tokens become one vector.
type Pooling uint8

const (
	// PoolingAuto is what the model's files say, or else the last token; of a model that
	// reads texts as a whole, the mean.
	PoolingAuto Pooling = iota
	// PoolingMean is the mean over all tokens.
	PoolingMean
	// PoolingLast is the last token, which alone has seen all others where tokens see
	// none after them.
	PoolingLast
	// PoolingCLS is the first token.
	PoolingCLS
	// PoolingMax is the largest value of each element over all tokens.
	PoolingMax
)

var poolingNames = []string{"auto", hub.PoolingMean, hub.PoolingLast, hub.PoolingCLS, hub.PoolingMax}

// String is "auto", "mean", "last", "cls" or "max".
func (p Pooling) String() string { return nameOf("pooling", p, poolingNames) }

// poolingOf is what a model's files say.
func poolingOf(f hub.Source, whole bool) (Pooling, error) {
	name, err := hub.Pooling(f, whole)
	if err != nil {
		return PoolingAuto, err
	}
	return Pooling(slices.Index(poolingNames, name)), nil
}
