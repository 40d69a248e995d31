package plan

// Concat returns the columns of x followed by those of y.
var Concat = &Op{Name: "concat"}

// Concat adds the rows of x [rows, a] followed by those of y [rows, b], [rows, a+b].
func (b *Builder) Concat(x, y Value) Value {
	if b.Rows(x) != b.Rows(y) {
		b.Failf("concat: %v rows and %v", b.Rows(x), b.Rows(y))
	}
	return b.add(Node{Op: Concat, In: []Value{x, y}, State: NoState}, b.Rows(x), Dim(b.Cols(x)+b.Cols(y)))
}
