package plan

import "github.com/realizar/realizar/tensor"

// Linear computes x·Wᵀ + b with W [out, in] of any weight dtype and an optional b [out].
var Linear = &Op{Name: "linear", Weight: Matrix}

// LinearAttr holds the parameters of a [Linear] that is one of several parts, as in [GatherAttr]; other
// nodes have none. Part i has columns Columns[i] of the weight and of the input. The result is the
// whole product in every part: the parts exchange their sums over their own columns and add them
// before the bias is added.
type LinearAttr struct{ Columns Cut }

func (a LinearAttr) String() string { return "{columns " + a.Columns.String() + "}" }

// Summed returns the columns of the parts that add their sums in n, see [LinearAttr]; nil for other
// nodes.
func (n *Node) Summed() Cut {
	a, _ := n.Attr.(LinearAttr)
	return a.Columns
}

// Linear adds x·wᵀ + bias; w is [out, in], bias is [out] or nil.
func (b *Builder) Linear(x Value, w, bias *tensor.Tensor) Value {
	b.matrix(w)
	if b.Cols(x) != w.Shape[1] {
		b.Failf("%s: shape %v takes %d inputs, is given %d", w.Name, w.Shape, w.Shape[1], b.Cols(x))
	}
	if bias != nil {
		b.vector(bias, w.Shape[0])
	}
	return b.add(Node{Op: Linear, In: []Value{x}, Weight: w, Bias: bias, State: NoState}, b.Rows(x), Dim(w.Shape[0]))
}
