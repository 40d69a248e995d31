package plan

import "fmt"

// Input returns columns of [Batch.Input], the values that another program has computed for the
// step's tokens: those of the layers before, if a program is a part of one that is divided by layers.
// It returns [T, columns], see [InputAttr].
var Input = &Op{Name: "input", Scope: ByToken}

// InputAttr holds the parameters of [Input].
type InputAttr struct {
	First, Columns int   // the columns of [Batch.Input]
	Of             *Node // the node of the other program that computes them, or nil if it is unknown
}

func (a InputAttr) String() string { return fmt.Sprintf("{columns %d:%d}", a.First, a.First+a.Columns) }

// Input adds further columns of the step's input. Inputs come first in a program.
func (b *Builder) Input(columns int) Value {
	switch n := len(b.p.Nodes); {
	case columns < 1:
		b.Failf("an input of %d columns", columns)
	case n > 0 && b.p.Nodes[n-1].Op != Input:
		b.Failf("an input behind %v; inputs come first", b.p.Nodes[n-1].Op)
	}
	first := b.p.Inputs
	b.p.Inputs += columns
	return b.add(Node{Op: Input, State: NoState, Attr: InputAttr{First: first, Columns: columns}}, Tokens, Dim(columns))
}
