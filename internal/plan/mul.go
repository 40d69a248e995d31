package plan

// Mul computes x * y, element by element. An x of one column multiplies whole rows of y.
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
