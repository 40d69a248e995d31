package plan

import "fmt"

// Mix computes a weighted sum of values, see [MixAttr].
var Mix = &Op{Name: "mix"}

// MixAttr holds the parameters of [Mix]: with coefficients c [rows, n] and values x[0], x[1], ... of
// the same shape, a row of the result is the sum of c[First+i] * x[i], added in this order. (Streams
// of a residual that a layer mixes: Baykal et al., "Alternating Updates for Efficient Transformers",
// 2023.)
type MixAttr struct{ First int }

func (a MixAttr) String() string { return fmt.Sprintf("{from %d}", a.First) }

// Mix adds the sum of the values x, each times a column of c, from column first on.
func (b *Builder) Mix(c Value, first int, x ...Value) Value {
	if first < 0 || len(x) == 0 || first+len(x) > b.Cols(c) || b.Rows(c) != b.Rows(x[0]) {
		b.Failf("mix: %d values by columns from %d on of %d", len(x), first, b.Cols(c))
	}
	for _, v := range x {
		b.same("mix", x[0], v)
	}
	return b.add(Node{Op: Mix, In: append([]Value{c}, x...), State: NoState, Attr: MixAttr{first}}, b.Rows(x[0]), Dim(b.Cols(x[0])))
}
