package plan

import "github.com/realizar/realizar/tensor"

// Conv is a causal convolution over the tokens of a sequence, for each column by itself. With w [d,
// L] and an optional b [d], y of the token at position t is b + the sum over i < L of w[i] * x of
// the token at position t-L+1+i, added in this order. Before the sequence's first token x is 0. A
// state per sequence keeps x of the last L-1 tokens, [L-1, d]. (The short convolutions of Poli et
// al., "Hyena Hierarchy", 2023, and of Gu and Dao, "Mamba", 2023.)
var Conv = &Op{Name: "conv", Scope: BySequence}

// Conv adds the convolution of x [T, d] by w [d, L], L > 1. bias is [d] or nil; state holds (L-1)*d
// values.
func (b *Builder) Conv(x Value, w, bias *tensor.Tensor, state int) Value {
	b.matrix(w)
	d, past := b.Cols(x), w.Shape[1]-1
	if w.Shape[0] != d || past < 1 {
		b.Failf("%s: want a row of two or more for each of %d columns, is %v", w.Name, d, w.Shape)
	}
	if s := b.p.States[state]; s.Kind != PerSequence || s.Size != past*d {
		b.Failf("%s: the last %d rows of %d values do not fit state %v", w.Name, past, d, s)
	}
	if bias != nil {
		b.vector(bias, d)
	}
	return b.add(Node{Op: Conv, In: []Value{x}, Weight: w, Bias: bias, State: state}, Tokens, Dim(d))
}
