package plan

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// LRU is the real-gated linear recurrent unit of Griffin (De et al., "Griffin: Mixing Gated Linear
// Recurrences with Local Attention for Efficient Language Models", 2024), see [LRUAttr].
var LRU = &Op{Name: "lru", Scope: BySequence}

// LRUAttr holds the parameters of [LRU], [d] each. Its inputs are x, the input gate i and the
// recurrence gate r. For each token in order and each column by itself, with σ the sigmoid,
//
//	a = exp(-8 * log(1 + exp(Rate)) * σ(r + DecayBias))
//	h = a*h + sqrt(1-a²) * σ(i + InputBias) * x
//
// and the result is h. For the sequence's first token h is σ(i + InputBias) * x. A state per sequence
// keeps h after its last token, in float32.
type LRUAttr struct {
	Rate, InputBias, DecayBias *tensor.Tensor
}

// weights implements weighted.
func (a LRUAttr) weights() []Weight {
	return []Weight{{a.Rate, Vector, 1, 1}, {a.InputBias, Vector, 1, 1}, {a.DecayBias, Vector, 1, 1}}
}

func (a LRUAttr) replace(f func(*tensor.Tensor) *tensor.Tensor) any {
	return LRUAttr{f(a.Rate), f(a.InputBias), f(a.DecayBias)}
}

func (a LRUAttr) String() string { return fmt.Sprintf("{%d columns}", a.Rate.Elems()) }

// LRU adds the unit for x [T, d] with gates input and decay [T, d]. state holds d values.
func (b *Builder) LRU(x, input, decay Value, state int, a LRUAttr) Value {
	d := b.Cols(x)
	b.same("lru: x and its input gate", x, input)
	b.same("lru: x and its recurrence gate", x, decay)
	if s := b.p.States[state]; s.Kind != PerSequence || s.Every != 0 || s.Size != d {
		b.Failf("lru: %d columns do not fit state %v", d, s)
	}
	for _, w := range []*tensor.Tensor{a.Rate, a.InputBias, a.DecayBias} {
		b.vector(w, d)
	}
	return b.add(Node{Op: LRU, In: []Value{x, input, decay}, State: state, Attr: a}, Tokens, Dim(d))
}
