package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// Attention stores the step's k and v in a state. Each token then attends to itself and to the
// earlier tokens of its sequence, see [AttentionAttr]. A node with queries alone stores nothing and
// attends to what an earlier node has stored. An optional weight holds sinks, see
// [Builder.Attention].
var Attention = &Op{Name: "attention", Scope: BySequence}

// AttentionAttr holds the parameters of [Attention] and [Bidirectional]. q is [T, Heads*HeadDim], k
// is [T, KVHeads*HeadDim], v [T, KVHeads*Values()] and the result [T, Heads*Values()]; query head h
// reads key/value head h / (Heads/KVHeads) (Ainslie et al., "GQA", 2023).
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
	Chunk                   int     // a token at position p sees positions from p/Chunk*Chunk on; 0: all
	First                   int     // positions before it are not seen; a token before it sees itself
	Top                     int     // a token sees so many positions at most, which [Select] has chosen; 0: all, see [Builder.SparseAttention]

	// See [Builder.CompressedAttention].
	Rate       int // compressed rows are after each multiple of so many tokens; 0: there are none
	Compressed int // their state
}

// Values returns the length of a head's value.
func (a *AttentionAttr) Values() int { return cmp.Or(a.ValueDim, a.HeadDim) }

// Group returns the group of the states that a node with these parameters attends to.
func (a *AttentionAttr) Group() Group { return Group{Kind: PerToken, Window: a.Window, Chunk: a.Chunk} }

// FirstSeen returns the first position that a token at pos sees.
func (a *AttentionAttr) FirstSeen(pos int) int {
	return max(a.Group().FirstVisible(pos), min(a.First, pos))
}

func (a AttentionAttr) second() int {
	if a.Rate > 0 {
		return a.Compressed
	}
	return NoState
}

func (a AttentionAttr) withSecond(state int) any {
	a.Compressed = state
	return a
}

func (a AttentionAttr) String() string {
	s := fmt.Sprintf("{heads %d/%d, dim %d", a.Heads, a.KVHeads, a.HeadDim)
	switch n := a.Values(); {
	case a.Latent && n == a.HeadDim:
		s += ", values their keys"
	case a.Latent:
		s += fmt.Sprintf(", values their first %d", n)
	case n != a.HeadDim:
		s += fmt.Sprintf(", value dim %d", n)
	}
	s += fmt.Sprintf(", scale %.8g", a.Scale)
	if a.Softcap > 0 {
		s += fmt.Sprintf(", softcap %.6g", a.Softcap)
	}
	if a.Window > 0 {
		s += fmt.Sprintf(", window %d", a.Window)
	}
	if a.Chunk > 0 {
		s += fmt.Sprintf(", chunk %d", a.Chunk)
	}
	if a.First > 0 {
		s += fmt.Sprintf(", from %d", a.First)
	}
	if a.Top > 0 {
		s += fmt.Sprintf(", top %d", a.Top)
	}
	if a.Rate > 0 {
		s += fmt.Sprintf(", beside rows @%d every %d", a.Compressed, a.Rate)
	}
	return s + "}"
}

// Attention stores k and v in state and attends to the keys and values that it holds. sinks is
// [Heads] or nil: a logit for each query head that takes part in every softmax of the head and has
// no value, so that a token may attend to nothing. Sinks are not scaled or capped. (Xiao et al.,
// "Efficient Streaming Language Models with Attention Sinks", 2023; learned for each head in
// OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025.)
func (b *Builder) Attention(q, k, v Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Latent || a.Top != 0 || a.Rate != 0 || b.Cols(k) != a.KVHeads*a.HeadDim || b.Cols(v) != a.KVHeads*a.Values() {
		b.Failf("attention %v does not fit k of %d and v of %d columns", a, b.Cols(k), b.Cols(v))
	}
	return b.attention([]Value{q, k, v}, sinks, state, a)
}

// LatentAttention is attention to keys whose first elements are also the values (DeepSeek-AI,
// "DeepSeek-V2", 2024). The value of a key/value head is its part of c [T, KVHeads*ValueDim]; its
// key is that followed by its part of r [T, KVHeads*(HeadDim-ValueDim)]. state holds keys only. q
// is [T, Heads*HeadDim], and sinks are those of [Builder.Attention].
func (b *Builder) LatentAttention(q, c, r Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Top != 0 || a.Rate != 0 {
		b.Failf("attention %v: no positions are chosen", a)
	}
	return b.latentAttention([]Value{q, c, r}, sinks, state, a)
}

// SparseAttention is [Builder.LatentAttention] to the positions that [Builder.Select] has chosen
// for each token, a.Top at most. If all are chosen, the bits are those of attention to all positions.
// (DeepSeek-AI, "DeepSeek-V3.2", 2025.)
func (b *Builder) SparseAttention(q, c, r, chosen Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Top <= 0 || b.Cols(chosen) != a.Top || a.Rate != 0 || !a.Group().KeepsAll() {
		b.Failf("attention %v does not fit %d chosen positions", a, b.Cols(chosen))
	}
	return b.latentAttention([]Value{q, c, r, chosen}, sinks, state, a)
}

// SharedAttention is attention to the keys k [T, HeadDim] of one head, which are also the values.
// state holds keys only.
func (b *Builder) SharedAttention(q, k Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	a.Latent = true
	if a.KVHeads != 1 || a.Values() != a.HeadDim || b.Cols(k) != a.HeadDim || a.Top != 0 || a.Rate != 0 {
		b.Failf("attention %v does not fit keys of %d columns", a, b.Cols(k))
	}
	return b.attention([]Value{q, k}, sinks, state, a)
}

// CompressedAttention is attention to the keys k [T, HeadDim] of tokens, which are also the values,
// and in the same softmax to compressed rows. Row i of these is row (i+1)*Rate-1 of far [T,
// HeadDim], the only ones that are stored; a token sees those of itself and tokens before it, or of
// these the ones whose numbers [Builder.Select] has chosen, a.Top at most. Segments of rows come
// before those of tokens. (DeepSeek-AI, "DeepSeek-V4", 2026.)
func (b *Builder) CompressedAttention(q, k, far Value, sinks *tensor.Tensor, state int, a AttentionAttr, chosen ...Value) Value {
	a.Latent = true
	if s := b.p.States[a.Compressed]; a.Rate < 1 || s.KVHeads != 1 || s.HeadDim != a.HeadDim || s.ValueDim != 0 || max(1, s.Every) != a.Rate || s.Exact || s.Kind != PerToken {
		b.Failf("attention %v does not fit compressed rows in state %v", a, s)
	}
	if a.KVHeads != 1 || a.Values() != a.HeadDim || b.Cols(k) != a.HeadDim || b.Cols(far) != a.HeadDim || len(chosen) != min(1, a.Top) || a.Top > 0 && b.Cols(chosen[0]) != a.Top {
		b.Failf("attention %v does not fit keys of %d and compressed rows of %d columns", a, b.Cols(k), b.Cols(far))
	}
	return b.attention(append([]Value{q, k, far}, chosen...), sinks, state, a)
}

func (b *Builder) latentAttention(in []Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	a.Latent = true
	c, r := in[1], in[2]
	if a.ValueDim <= 0 || a.ValueDim >= a.HeadDim || b.Cols(c) != a.KVHeads*a.ValueDim || b.Cols(r) != a.KVHeads*(a.HeadDim-a.ValueDim) {
		b.Failf("attention %v does not fit keys of %d and %d columns", a, b.Cols(c), b.Cols(r))
	}
	return b.attention(in, sinks, state, a)
}

// Chosen returns the value that holds the positions that a node of [Attention] attends to, or -1 if
// it attends to all.
func (n *Node) Chosen() Value {
	if a, ok := n.Attr.(AttentionAttr); ok && a.Top > 0 {
		return n.In[len(n.In)-1]
	}
	return -1
}

// AttentionTo attends with queries q to the keys and values that an earlier node stores in state,
// those of the step's own tokens included. (Layers that share keys and values: Brandon et al.,
// "Reducing Transformer Key-Value Cache Size with Cross-Layer Attention", 2024.)
func (b *Builder) AttentionTo(q Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Top != 0 || a.Rate != 0 {
		b.Failf("attention %v: no positions are chosen", a)
	}
	if !slices.ContainsFunc(b.p.Nodes, func(n Node) bool { return n.Op == Attention && n.State == state }) {
		b.Failf("attention %v: no earlier node stores keys and values in state %d", a, state)
	}
	return b.attention([]Value{q}, sinks, state, a)
}

func (b *Builder) attention(in []Value, sinks *tensor.Tensor, state int, a AttentionAttr) Value {
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 {
		b.Failf("attention: %d query heads cannot share %d key/value heads", a.Heads, a.KVHeads)
	}
	if b.Cols(in[0]) != a.Heads*a.HeadDim || a.ValueDim < 0 || a.First < 0 || a.First > 0 && (a.Top > 0 || a.Rate > 0) {
		b.Failf("attention %v does not fit q of %d columns", a, b.Cols(in[0]))
	}
	valueDim := a.Values()
	if a.Latent {
		valueDim = 0
	}
	if s := b.p.States[state]; s.KVHeads != a.KVHeads || s.HeadDim != a.HeadDim || s.ValueDim != valueDim || s.group() != a.Group() || s.Exact {
		b.Failf("attention %v does not fit state %v", a, s)
	}
	if !(a.Softcap >= 0 && a.Softcap <= math.MaxFloat32) { // also refuses NaN
		b.Failf("attention: a softcap of %v bounds nothing: want a positive number, or 0 for none", a.Softcap)
	}
	if sinks != nil {
		b.vector(sinks, a.Heads)
	}
	return b.add(Node{Op: Attention, In: in, Weight: sinks, State: state, Attr: a}, Tokens, Dim(a.Heads*a.Values()))
}
