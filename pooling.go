package realizar

import (
	"slices"

	"github.com/realizar/realizar/internal/hub"
)

// Pooling says how the hidden states of a text's tokens become one vector.
type Pooling uint8

const (
	// PoolingAuto is the pooling that the model's files name. If they name none, it is the mean
	// for encoders and the last token for other models.
	PoolingAuto Pooling = iota
	// PoolingMean is the mean over all tokens.
	PoolingMean
	// PoolingLast is the hidden state of the last token. With causal attention only the last token
	// depends on the whole text.
	PoolingLast
	// PoolingCLS is the hidden state of the first token.
	PoolingCLS
	// PoolingMax is the largest value of each element over all tokens.
	PoolingMax
)

var poolingNames = []string{"auto", hub.PoolingMean, hub.PoolingLast, hub.PoolingCLS, hub.PoolingMax}

// String returns "auto", "mean", "last", "cls" or "max".
func (p Pooling) String() string { return nameOf("pooling", p, poolingNames) }

// poolingOf returns the pooling that a model's files name, or the default for whole, which says
// that the model is an encoder.
func poolingOf(f hub.Source, whole bool) (Pooling, error) {
	name, err := hub.Pooling(f, whole)
	if err != nil {
		return PoolingAuto, err
	}
	return Pooling(slices.Index(poolingNames, name)), nil
}
