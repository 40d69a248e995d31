package eval

import (
	"math"

	"github.com/realizar/realizar/internal/sample"
)

// A Score is how well a model predicted tokens. The zero Score has seen none.
type Score struct {
	Tokens int
	sum    float64 // of the tokens' surprise, in nats
	square float64 // of what each is beside the first, for the spread
	shift  float64 // the first one
	cross  float64 // sum beside the first
}

// Add adds a token that came after logits [vocab].
func (s *Score) Add(logits []float32, token int32) {
	nats := -sample.LogProbability(logits, token)
	if s.Tokens == 0 {
		s.shift = nats
	}
	s.Tokens++
	s.sum += nats
	s.cross += nats - s.shift
	s.square += (nats - s.shift) * (nats - s.shift)
}

// Nats is the sum of the tokens' negative log-likelihoods.
func (s *Score) Nats() float64 { return s.sum }

// Mean is Nats for each token.
func (s *Score) Mean() float64 { return s.sum / float64(s.Tokens) }

// Perplexity is the exponential of Mean.
func (s *Score) Perplexity() float64 { return math.Exp(s.Mean()) }

// PerplexityError is the standard error of Perplexity, as if tokens were independent
// of each other: that of Mean, carried through the exponential. It is NaN for less than
// two tokens.
func (s *Score) PerplexityError() float64 {
	n := float64(s.Tokens)
	variance := (s.square - s.cross*s.cross/n) / (n - 1)
	return s.Perplexity() * math.Sqrt(max(0, variance)/n)
}

// BitsPerByte is what a byte of a text of so many bytes takes, if the model encodes it.
func (s *Score) BitsPerByte(bytes int) float64 { return s.sum / math.Ln2 / float64(bytes) }
