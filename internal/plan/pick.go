package plan

// Pick is the rows of x that the step wants, [T, d] -> [R, d], see [PickAttr].
var Pick = &Op{Name: "pick", Scope: BySequence}

// PickAttr are the parameters of [Pick].
type PickAttr struct {
	// Mean: instead of a wanted token's row, the mean of the rows of all tokens of its
	// sequence; of programs that are [Program.Whole].
	Mean bool
}

func (a PickAttr) String() string {
	if a.Mean {
		return "{mean}"
	}
	return ""
}

// Pick keeps the rows of the residual stream x [T, d] that the step wants. A
// program has one.
func (b *Builder) Pick(x Value) Value { return b.pick(x, PickAttr{}) }

// PickMean is Pick with the mean of all tokens of a wanted row's sequence, which is in
// the step as a whole, in place of the row.
func (b *Builder) PickMean(x Value) Value {
	b.p.Whole = true
	return b.pick(x, PickAttr{Mean: true})
}

func (b *Builder) pick(x Value, a PickAttr) Value {
	if b.p.Residual >= 0 {
		b.Failf("pick: a program has one")
	}
	b.p.Residual = x
	return b.add(Node{Op: Pick, In: []Value{x}, State: NoState, Attr: a}, Rows, Dim(b.Cols(x)))
}
