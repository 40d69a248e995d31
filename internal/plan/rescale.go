package plan

import "fmt"

// Rescale gives a row the size of another, see [RescaleAttr].
var Rescale = &Op{Name: "rescale"}

// RescaleAttr holds the parameters of [Rescale]: x * sqrt(mean(like²)) / sqrt(max(mean(x²), Eps)),
// over the columns of a row (Gemma team, "Gemma 3n", 2025).
type RescaleAttr struct{ Eps float64 }

func (a RescaleAttr) String() string { return fmt.Sprintf("{eps %.6g}", a.Eps) }

// Rescale adds x with the root mean square of the rows of like.
func (b *Builder) Rescale(x, like Value, eps float64) Value {
	b.same("rescale", x, like)
	if !(eps > 0 && eps < 1e30) {
		b.Failf("rescale: an eps of %v, want a positive number", eps)
	}
	return b.add(Node{Op: Rescale, In: []Value{x, like}, State: NoState, Attr: RescaleAttr{eps}}, b.Rows(x), Dim(b.Cols(x)))
}
