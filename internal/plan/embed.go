package plan

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// Embed reads the rows of a table [vocab, d] at the step's token ids and returns [T, d], or some
// columns of them, see [EmbedAttr].
var Embed = &Op{Name: "embed", Weight: Table, Scope: ByToken}

// EmbedAttr holds the parameters of an [Embed] that reads a part of each row. A token that the
// table lacks reads the table's first row.
type EmbedAttr struct {
	First, Columns int // the part of a row
}

func (a EmbedAttr) String() string { return fmt.Sprintf("{columns %d:%d}", a.First, a.First+a.Columns) }

// Embed adds the rows of table w [vocab, d] at the step's token ids.
func (b *Builder) Embed(w *tensor.Tensor) Value {
	b.matrix(w)
	if b.p.Vocab != 0 && b.p.Vocab != w.Shape[0] {
		b.Failf("%s: a second table of %d tokens beside one of %d", w.Name, w.Shape[0], b.p.Vocab)
	}
	b.p.Vocab = w.Shape[0]
	return b.add(Node{Op: Embed, Weight: w, State: NoState}, Tokens, Dim(w.Shape[1]))
}

// EmbedPart adds columns first to first+columns of the rows of a further table w at the step's token
// ids, such as a layer's part of per-layer embeddings (Gemma team, "Gemma 3n", 2025). They must be
// whole blocks of w's format.
func (b *Builder) EmbedPart(w *tensor.Tensor, first, columns int) Value {
	b.matrix(w)
	switch n := w.DType.BlockLen(); {
	case b.p.Vocab == 0:
		b.Failf("%s: the table of all tokens must come first", w.Name)
	case first < 0 || columns < 1 || first+columns > w.Shape[1] || first%n != 0 || columns%n != 0:
		b.Failf("%s: columns %d to %d are no part of %v in whole blocks of %d", w.Name, first, first+columns, w.Shape, n)
	}
	return b.add(Node{Op: Embed, Weight: w, State: NoState, Attr: EmbedAttr{first, columns}}, Tokens, Dim(columns))
}
