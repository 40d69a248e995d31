package plan

// Store writes a row of each token to a state, for later nodes and steps.
var Store = &Op{Name: "store", Scope: BySequence}

// Recall returns for each token the row of the position before it, [T, d].
var Recall = &Op{Name: "recall", Scope: BySequence}

// Store adds the storing of k and v as the keys and values of state, as [Builder.Attention] stores
// them. The state of a single input has keys only. With two inputs it has keys and values, or if it
// has keys only, the keys of a head are its part of the first followed by its part of the second.
// The result is [T, 0].
func (b *Builder) Store(state int, in ...Value) Value {
	s, cols := b.p.States[state], 0
	for _, v := range in {
		cols += b.Cols(v)
	}
	if s.Kind != PerToken || s.Every > 0 || len(in) == 0 || len(in) > 2 || cols != s.Width() || s.ValueDim > 0 && (len(in) != 2 || b.Cols(in[0]) != s.KVHeads*s.HeadDim) {
		b.Failf("store: %d values of %d columns do not fit state %v", len(in), cols, s)
	}
	return b.add(Node{Op: Store, In: in, State: state}, Tokens, 0)
}

// Recall adds the reading of the rows of state at the positions before those of the step's tokens. The
// state has one exact key for each token and a window of at least 2. At position 0 the row is zeros.
func (b *Builder) Recall(state int) Value {
	s := b.p.States[state]
	if s.Kind != PerToken || !s.Exact || s.KVHeads != 1 || s.ValueDim != 0 || s.Every > 0 || s.Chunk > 0 || s.Window == 1 {
		b.Failf("recall: state %v does not have the row before a token", s)
	}
	return b.add(Node{Op: Recall, State: state}, Tokens, Dim(s.HeadDim))
}
