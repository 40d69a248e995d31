package plan

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// Attention stores the step's k and v in a state. Each token then attends to itself and to the
// earlier tokens of its sequence, see [AttentionAttr]. An optional weight holds sinks, see
// [Builder.Attention].
var Attention = &Op{Name: "attention", Scope: BySequence}

// AttentionAttr holds the parameters of [Attention] and [Bidirectional]. q is [T, Heads*HeadDim], k
// and v are [T, KVHeads*HeadDim]; query head h reads key/value head h / (Heads/KVHeads) (Ainslie et
// al., "GQA", 2023).
//
// A score is q·k * Scale. With a Softcap c it becomes c * tanh(score/c), which stays between -c and
// c (Gemma team, "Gemma 2", 2024).
type AttentionAttr struct {
	Heads, KVHeads, HeadDim int
	Scale                   float64 // multiplies q·k before the softmax
	Softcap                 float64 // caps the scaled scores; 0: no cap
	Window                  int     // a token sees itself and the Window-1 tokens before it, and in Bidirectional as many after it; 0: all
}

func (a AttentionAttr) String() string {
	s := fmt.Sprintf("{heads %d/%d, dim %d, scale %.8g", a.Heads, a.KVHeads, a.HeadDim, a.Scale)
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
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 {
		b.Failf("attention: %d query heads cannot share %d key/value heads", a.Heads, a.KVHeads)
	}
	if b.Cols(q) != a.Heads*a.HeadDim || b.Cols(k) != a.KVHeads*a.HeadDim || b.Cols(v) != b.Cols(k) {
		b.Failf("attention %v does not fit q of %d, k of %d and v of %d columns", a, b.Cols(q), b.Cols(k), b.Cols(v))
	}
	if s := b.p.States[state]; s.KVHeads != a.KVHeads || s.HeadDim != a.HeadDim || s.ValueDim != a.HeadDim || s.Window != a.Window {
		b.Failf("attention %v does not fit state %v", a, s)
	}
	if !(a.Softcap >= 0 && a.Softcap <= math.MaxFloat32) { // also refuses NaN
		b.Failf("attention: a softcap of %v bounds nothing: want a positive number, or 0 for none", a.Softcap)
	}
	if sinks != nil {
		b.vector(sinks, a.Heads)
	}
	return b.add(Node{Op: Attention, In: []Value{q, k, v}, Weight: sinks, State: state, Attr: a}, Tokens, Dim(b.Cols(q)))
}
