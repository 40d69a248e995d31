package plan

import "github.com/realizar/realizar/tensor"

// Mul computes x * y, element by element. An x of one column multiplies whole rows of y; a weight in
// place of y multiplies every row of x.
var Mul = &Op{Name: "mul"}

// Mul adds the node x * y.
func (b *Builder) Mul(x, y Value) Value {
	if b.Cols(x) != 1 {
		b.same("mul", x, y)
	} else if b.Rows(x) != b.Rows(y) {
		b.Failf("mul: a column of %v rows for %v", b.Rows(x), b.Rows(y))
	}
	return b.add(Node{Op: Mul, In: []Value{x, y}, State: NoState}, b.Rows(y), Dim(b.Cols(y)))
}

// MulBy adds the node x * w, where w has an element for each column.
func (b *Builder) MulBy(x Value, w *tensor.Tensor) Value {
	b.vector(w, b.Cols(x))
	return b.add(Node{Op: Mul, In: []Value{x}, Weight: w, State: NoState}, b.Rows(x), Dim(b.Cols(x)))
}
