package plan

// Pick returns the wanted rows of x, [T, d] -> [R, d], see [PickAttr].
var Pick = &Op{Name: "pick", Scope: BySequence}

// PickAttr holds the parameters of [Pick].
type PickAttr struct {
	// Mean replaces each wanted row by the mean of all rows of its sequence. It requires
	// [Program.Whole].
	Mean bool
}

func (a PickAttr) String() string {
	if a.Mean {
		return "{mean}"
	}
	return ""
}

// Pick adds the choice of the wanted rows of the residual stream x [T, d]. A program has one, and its
// head one.
func (b *Builder) Pick(x Value) Value { return b.pick(x, PickAttr{}) }

// PickMean is Pick with the mean of all rows of a sequence in place of each wanted row. It makes
// the program [Program.Whole].
func (b *Builder) PickMean(x Value) Value {
	b.p.Whole = true
	return b.pick(x, PickAttr{Mean: true})
}

func (b *Builder) pick(x Value, a PickAttr) Value {
	residual, _, _ := b.outputs()
	if *residual >= 0 {
		b.Failf("pick: a program has only one, and its head one")
	}
	*residual = x
	return b.add(Node{Op: Pick, In: []Value{x}, State: NoState, Attr: a}, Rows, Dim(b.Cols(x)))
}
