package plan

// Add computes x + y.
var Add = &Op{Name: "add"}

// Add adds the node x + y.
func (b *Builder) Add(x, y Value) Value {
	b.same("add", x, y)
	return b.add(Node{Op: Add, In: []Value{x, y}, State: NoState}, b.Rows(x), Dim(b.Cols(x)))
}
