package plan

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// HeadLinear multiplies each head with a weight of its own, see [Builder.HeadLinear].
var HeadLinear = &Op{Name: "headlinear"}

// HeadLinearAttr holds the weights of [HeadLinear].
type HeadLinearAttr struct {
	Weight []*tensor.Tensor // by head: [out, in], all of the same dtype and shape
	Kept   int              // elements of a head after the first in
}

// weights implements weighted.
func (a HeadLinearAttr) weights() []Weight {
	var all []Weight
	for _, w := range a.Weight {
		all = append(all, Weight{w, Matrix, len(a.Weight), len(a.Weight)})
	}
	return all
}

func (a HeadLinearAttr) replace(f func(*tensor.Tensor) *tensor.Tensor) any {
	a.Weight = slices.Clone(a.Weight)
	for i, w := range a.Weight {
		a.Weight[i] = f(w)
	}
	return a
}

// In returns the number of elements of a head that are multiplied.
func (a HeadLinearAttr) In() int { return a.Weight[0].Cols() }

// Out returns the number of elements of a head's product.
func (a HeadLinearAttr) Out() int { return a.Weight[0].Rows() }

func (a HeadLinearAttr) String() string {
	s := fmt.Sprintf("{%d heads, %d to %d", len(a.Weight), a.In(), a.Out())
	if a.Kept > 0 {
		s += fmt.Sprintf(", %d kept", a.Kept)
	}
	return s + "}"
}

// HeadLinear adds the products of heads: with w [out, in] by head, head h of the result is the
// product w[h]·x of the first in elements of head h of x, followed by the rest of that head as it
// is. So x [rows, heads*(in+kept)] becomes [rows, heads*(out+kept)].
func (b *Builder) HeadLinear(x Value, w []*tensor.Tensor) Value {
	if len(w) == 0 || b.Cols(x)%len(w) != 0 {
		b.Failf("headlinear: %d weights for %d columns", len(w), b.Cols(x))
	}
	for _, t := range w {
		b.matrix(t)
		if !slices.Equal(t.Shape, w[0].Shape) || t.DType != w[0].DType {
			b.Failf("%s: want %v of shape %v, as the first head's, is %v of shape %v", t.Name, w[0].DType, w[0].Shape, t.DType, t.Shape)
		}
	}
	a := HeadLinearAttr{Weight: w, Kept: b.Cols(x)/len(w) - w[0].Shape[1]}
	if a.Kept < 0 || a.In() < 1 || a.Out() < 1 {
		b.Failf("%s: shape %v does not fit heads of %d elements", w[0].Name, w[0].Shape, b.Cols(x)/len(w))
	}
	return b.add(Node{Op: HeadLinear, In: []Value{x}, State: NoState, Attr: a}, b.Rows(x), Dim(len(w)*(a.Out()+a.Kept)))
}
