package plan

import "fmt"

// Spread moves columns to other places of a wider row, see [SpreadAttr].
var Spread = &Op{Name: "spread"}

// SpreadAttr holds the parameters of [Spread]: column IDs[i] of the result is column i of the input.
// All other columns are [Absent].
type SpreadAttr struct {
	IDs  []int32 // different ones, from 0 to Cols-1
	Cols int
}

// mostSpread bounds the columns of a result, so that their number can be checked before memory is taken.
const mostSpread = 1 << 24

// Absent is the logit of a token that a head cannot predict. It is finite, and its probability is 0
// beside any other token's.
const Absent = -1e30

func (a SpreadAttr) String() string { return fmt.Sprintf("{%d of %d columns}", len(a.IDs), a.Cols) }

// Spread adds x with its column i in column ids[i] of cols columns, which are [Absent] elsewhere: the
// logits of a vocabulary of which x has some tokens.
func (b *Builder) Spread(x Value, ids []int32, cols int) Value {
	if len(ids) != b.Cols(x) || cols < 1 || cols > mostSpread {
		b.Failf("spread: %d columns to %d places of %d", b.Cols(x), len(ids), cols)
	}
	taken := make([]bool, cols)
	for i, id := range ids {
		if id < 0 || int(id) >= cols || taken[id] {
			b.Failf("spread: column %d goes to %d of %d columns, which does not exist or has another", i, id, cols)
		}
		taken[id] = true
	}
	return b.add(Node{Op: Spread, In: []Value{x}, State: NoState, Attr: SpreadAttr{ids, cols}}, b.Rows(x), Dim(cols))
}
