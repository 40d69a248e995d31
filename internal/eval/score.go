package eval

import (
	"math"

	"github.com/realizar/realizar/internal/sample"
)

// A Score measures how well a model predicted tokens. The zero Score has no tokens.
type Score struct {
	Tokens int
	sum    float64 // of the tokens' surprises, in nats
	square float64 // sum of squares of the differences from shift
	shift  float64 // surprise of the first token
	cross  float64 // sum of the differences from shift
}

// Add adds a token that followed logits [vocab].
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

// Nats returns the sum of the tokens' negative log-likelihoods.
func (s *Score) Nats() float64 { return s.sum }

// Mean returns Nats per token.
func (s *Score) Mean() float64 { return s.sum / float64(s.Tokens) }

// Perplexity returns the exponential of Mean.
func (s *Score) Perplexity() float64 { return math.Exp(s.Mean()) }

// PerplexityError returns the standard error of Perplexity, as if tokens were independent: that of
// Mean times Perplexity. It is NaN for fewer than two tokens.
func (s *Score) PerplexityError() float64 {
	n := float64(s.Tokens)
	variance := (s.square - s.cross*s.cross/n) / (n - 1)
	return s.Perplexity() * math.Sqrt(max(0, variance)/n)
}

// BitsPerByte returns the bits per byte in which the model could encode the text, which has that
// many bytes.
func (s *Score) BitsPerByte(bytes int) float64 { return s.sum / math.Ln2 / float64(bytes) }
