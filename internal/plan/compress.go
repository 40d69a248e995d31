package plan

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// Compress joins consecutive tokens to one row, see [CompressAttr].
var Compress = &Op{Name: "compress", Scope: BySequence}

// CompressAttr holds the parameters of [Compress]. The rows of a window of Rate tokens, from an
// absolute multiple on, become one: element by element, the mean of x weighted by the softmax of
// gate + bias over the window. Its last token has the result; all others have zeros.
//
// With Overlap, x and gate are twice as wide. The softmax is over the second half of the window's
// elements and the first half of those of the window before, if there is one. (DeepSeek-AI,
// "DeepSeek-V4", 2026, the compressors of compressed sparse and heavily compressed attention.)
type CompressAttr struct {
	Rate    int
	Overlap bool
}

func (a CompressAttr) String() string {
	s := fmt.Sprintf("{rate %d", a.Rate)
	if a.Overlap {
		s += ", overlapping"
	}
	return s + "}"
}

// Span returns how many tokens a row is made of.
func (a *CompressAttr) Span() int {
	if a.Overlap {
		return 2 * a.Rate
	}
	return a.Rate
}

// State returns the state that the operation needs: x and gate of each token.
func (a *CompressAttr) State(cols int) State {
	return State{KVHeads: 1, HeadDim: 2 * cols, Window: a.Span(), Exact: true}
}

// Compress adds the compression of x [T, d] with gate [T, d] and bias [Rate, d], which gives [T, d],
// or [T, d/2] with Overlap. state is as [CompressAttr.State] returns it.
func (b *Builder) Compress(x, gate Value, bias *tensor.Tensor, state int, a CompressAttr) Value {
	cols := b.Cols(x)
	b.same("compress", x, gate)
	b.matrix(bias)
	if a.Rate < 1 || bias.Shape[0] != a.Rate || bias.Shape[1] != cols || a.Overlap && cols%2 != 0 {
		b.Failf("compress %v: %s of shape %v does not fit %d columns", a, bias.Name, bias.Shape, cols)
	}
	if s, want := b.p.States[state], a.State(cols); s.group() != want.group() || s.KVHeads != 1 || s.HeadDim != want.HeadDim || s.ValueDim != 0 || !s.Exact {
		b.Failf("compress %v does not fit state %v", a, s)
	}
	if a.Overlap {
		cols /= 2
	}
	return b.add(Node{Op: Compress, In: []Value{x, gate}, Weight: bias, State: state, Attr: a}, Tokens, Dim(cols))
}
