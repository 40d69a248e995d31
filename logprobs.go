package realizar

import (
	"unsafe"

	"github.com/realizar/realizar/internal/sample"
)

// A TokenLogProb says how likely the model held a token in its place: the natural
// logarithm of its probability under the plain softmax of the logits, before biases,
// penalties, masks and the filters of [Sampling].
type TokenLogProb struct {
	Token   int32
	LogProb float64
	Top     []TopLogProb // the likeliest in its place, in order, as many as were asked for
}

// A TopLogProb is one of the likeliest tokens of a place.
type TopLogProb struct {
	Token   int32
	LogProb float64
}

// Bytes is the memory that p takes, in a list that grows.
func (p *TokenLogProb) Bytes() int64 {
	return 2*int64(unsafe.Sizeof(*p)) + int64(len(p.Top))*int64(unsafe.Sizeof(TopLogProb{}))
}

// A prober finds log-probabilities.
type prober struct {
	top []sample.TopToken // scratch
}

// of is that of id under logits, and the n likeliest beside it.
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
