package realizar

import (
	"unsafe"

	"github.com/realizar/realizar/internal/sample"
)

// A TokenLogProb is the log-probability of a token: the natural logarithm of its probability under
// the softmax of the logits, before biases, penalties, masks and the filters of [Sampling].
type TokenLogProb struct {
	Token   int32
	LogProb float64
	Top     []TopLogProb // the most likely tokens at this position, in descending order
}

// A TopLogProb is the log-probability of one of the most likely tokens at a position.
type TopLogProb struct {
	Token   int32
	LogProb float64
}

// Bytes returns the bytes of memory that p takes as an element of a growing slice.
func (p *TokenLogProb) Bytes() int64 {
	return 2*int64(unsafe.Sizeof(*p)) + int64(len(p.Top))*int64(unsafe.Sizeof(TopLogProb{}))
}

// A prober computes log-probabilities.
type prober struct {
	top []sample.TopToken // scratch
}

// of returns the log-probability of id under logits, with the n most likely tokens.
func (p *prober) of(logits []float32, id int32, n int) TokenLogProb {
	t := TokenLogProb{Token: id, LogProb: sample.LogProbability(logits, id)}
	if n == 0 {
		return t
	}
	p.top = sample.Top(logits, n, p.top[:0])
	t.Top = make([]TopLogProb, len(p.top))
	for i, x := range p.top {
		t.Top[i] = TopLogProb{Token: x.Token, LogProb: x.LogProbability}
	}
	return t
}
