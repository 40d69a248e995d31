package plan

// Bidirectional attends to all tokens of a token's sequence, or to those within a window, see
// [AttentionAttr]. It has no state: a whole sequence is in one step, see [Program.Whole].
var Bidirectional = &Op{Name: "bidirectional", Scope: BySequence}

// Bidirectional adds attention of every token to all tokens of its sequence. It makes the program
// [Program.Whole].
func (b *Builder) Bidirectional(q, k, v Value, a AttentionAttr) Value {
	if a.Heads <= 0 || a.KVHeads <= 0 || a.Heads%a.KVHeads != 0 || a.Softcap != 0 || a.Latent || a.Top != 0 || a.Rate != 0 || a.Values() != a.HeadDim {
		b.Failf("bidirectional: %d query heads cannot share %d key/value heads with a softcap of %v and values of %d", a.Heads, a.KVHeads, a.Softcap, a.Values())
	}
	if b.Cols(q) != a.Heads*a.HeadDim || b.Cols(k) != a.KVHeads*a.HeadDim || b.Cols(v) != b.Cols(k) || a.Values() != a.HeadDim || a.Chunk != 0 {
		b.Failf("bidirectional %v does not fit q of %d, k of %d and v of %d columns", a, b.Cols(q), b.Cols(k), b.Cols(v))
	}
	b.p.Whole = true
	return b.add(Node{Op: Bidirectional, In: []Value{q, k, v}, State: NoState, Attr: a}, Tokens, Dim(b.Cols(q)))
}
