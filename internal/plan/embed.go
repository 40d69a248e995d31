package plan

import "github.com/realizar/realizar/tensor"

// Embed reads the rows of a table [vocab, d] at the step's token ids and returns [T, d].
var Embed = &Op{Name: "embed", Weight: Table, Scope: ByToken}

// Embed adds the rows of table w [vocab, d] at the step's token ids.
func (b *Builder) Embed(w *tensor.Tensor) Value {
	b.matrix(w)
	if b.p.Vocab != 0 && b.p.Vocab != w.Shape[0] {
		b.Failf("%s: a second table of %d tokens beside one of %d", w.Name, w.Shape[0], b.p.Vocab)
	}
	b.p.Vocab = w.Shape[0]
	return b.add(Node{Op: Embed, Weight: w, State: NoState}, Tokens, Dim(w.Shape[1]))
}
