package plan

import (
	"fmt"
	"math"
)

// Sparsify keeps the largest elements of a row, see [SparsifyAttr].
var Sparsify = &Op{Name: "sparsify"}

// SparsifyAttr holds the parameters of [Sparsify]: max(0, x - (mean + By*deviation)), with the mean
// and the standard deviation of the row, which divides by its length. If the elements are normally
// distributed, By is the quantile of the share that becomes 0 (the "statistical top-k" of You et al.,
// "Spark Transformer", 2025).
type SparsifyAttr struct{ By float64 }

func (a SparsifyAttr) String() string { return fmt.Sprintf("{by %.6g}", a.By) }

// Sparsify adds x with the elements below the row's threshold set to 0.
func (b *Builder) Sparsify(x Value, by float64) Value {
	if !(math.Abs(by) < 1e30) {
		b.Failf("sparsify: a threshold of %v deviations, want a number", by)
	}
	return b.add(Node{Op: Sparsify, In: []Value{x}, State: NoState, Attr: SparsifyAttr{by}}, b.Rows(x), Dim(b.Cols(x)))
}
