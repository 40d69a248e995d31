package plan

import (
	"cmp"
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// Attention stores the step's k and v in a state. Each token then attends to itself and to the
// earlier tokens of its sequence, see [AttentionAttr]. An optional weight holds sinks, see
// [Builder.Attention].
var Attention = &Op{Name: "attention", Scope: BySequence}

// AttentionAttr holds the parameters of [Attention] and [Bidirectional]. q is [T, Heads*HeadDim], k
// is [T, KVHeads*HeadDim] and v is [T, KVHeads*ValueLen]; query head h reads key/value head h /
// (Heads/KVHeads) (Ainslie et al., "GQA", 2023). The result is [T, Heads*ValueLen].
//
// A score is q·k * Scale. With a Softcap c it becomes c * tanh(score/c), which stays between -c and
// c (Gemma team, "Gemma 2", 2024).
type AttentionAttr struct {
	Heads, KVHeads, HeadDim int
	ValueDim                int     // length of a head's value; 0: HeadDim
	Latent                  bool    // a head's value is the beginning of its key, see [Builder.LatentAttention]
	Scale                   float64 // multiplies q·k before the softmax
	Softcap                 float64 // caps the scaled scores; 0: no cap
	Window                  int     // a token sees itself and the Window-1 tokens before it, and in Bidirectional as many after it; 0: all
}

// ValueLen returns the length of a head's value.
func (a AttentionAttr) ValueLen() int { return cmp.Or(a.ValueDim, a.HeadDim) }

func (a AttentionAttr) String() string {
	s := fmt.Sprintf("{heads %d/%d, dim %d", a.Heads, a.KVHeads, a.HeadDim)
	switch {
	case a.Latent:
		s += fmt.Sprintf(", values their first %d", a.ValueLen())
	case a.ValueLen() != a.HeadDim:
		s += fmt.Sprintf(", value dim %d", a.ValueDim)
	}
	s += fmt.Sprintf(", scale %.8g", a.Scale)
	if a.Softcap > 0 {
		s += fmt.Sprintf(", softcap %.6g", a.Softcap)
	}
	if a.Window > 0 {
		s += fmt.Sprintf(", window %d", a.Window)
	}
	return s + "}"
}

// Attention stores k and v in state and attends to the keys and values that it holds. sinks is
// [Heads] or nil: a logit for each query head that takes part in every softmax of the head and has
// no value, so that a token may attend to nothing. Sinks are not scaled or capped. (Xiao et al.,
// "Efficient Streaming Language Models with Attention Sinks", 2023; learned for each head in
// OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025.)
func (b *Builder) Attention(q, k, v Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Latent || b.Cols(k) != a.KVHeads*a.HeadDim || b.Cols(v) != a.KVHeads*a.ValueLen() {
		b.Failf("attention %v does not fit k of %d and v of %d columns", a, b.Cols(k), b.Cols(v))
	}
	return b.attention(q, k, v, sinks, state, a, a.ValueLen())
}

// LatentAttention is attention to keys whose first elements are also the values (DeepSeek-AI,
// "DeepSeek-V2", 2024). The value of a key/value head is its part of c [T, KVHeads*ValueDim]; its
// key is that followed by its part of r [T, KVHeads*(HeadDim-ValueDim)]. state holds keys only. q
// is [T, Heads*HeadDim], and sinks are those of [Builder.Attention].
func (b *Builder) LatentAttention(q, c, r Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	a.Latent = true
	if a.ValueDim <= 0 || a.ValueDim >= a.HeadDim || b.Cols(c) != a.KVHeads*a.ValueDim || b.Cols(r) != a.KVHeads*(a.HeadDim-a.ValueDim) {
		b.Failf("attention %v does not fit keys of %d and %d columns", a, b.Cols(c), b.Cols(r))
	}
	return b.attention(q, c, r, sinks, state, a, 0)
}

// attention adds attention with a state whose values have length valueDim.
func (b *Builder) attention(q, k, v Value, sinks *tensor.Tensor, state int, a AttentionAttr, valueDim int) Value {
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 {
		b.Failf("attention: %d query heads cannot share %d key/value heads", a.Heads, a.KVHeads)
	}
	if b.Cols(q) != a.Heads*a.HeadDim {
		b.Failf("attention %v does not fit q of %d columns", a, b.Cols(q))
	}
	if s := b.p.States[state]; s.KVHeads != a.KVHeads || s.HeadDim != a.HeadDim || s.ValueDim != valueDim || s.Window != a.Window {
		b.Failf("attention %v does not fit state %v", a, s)
	}
	if !(a.Softcap >= 0 && a.Softcap <= math.MaxFloat32) { // also refuses NaN
		b.Failf("attention: a softcap of %v bounds nothing: want a positive number, or 0 for none", a.Softcap)
	}
	if sinks != nil {
		b.vector(sinks, a.Heads)
	}
	return b.add(Node{Op: Attention, In: []Value{q, k, v}, Weight: sinks, State: state, Attr: a}, Tokens, Dim(a.Heads*a.ValueLen()))
}
