package plan

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// Position reads the rows of a table [positions, d] at the positions of the step's tokens and
// returns [T, d], see [PositionAttr].
var Position = &Op{Name: "position", Weight: Table, Scope: ByToken}

// PositionAttr holds the parameters of [Position].
type PositionAttr struct {
	Axis int // 0: [Batch.Positions]; 1 or 2: a token's second or third position, in [Batch.Axes]
}

func (a PositionAttr) String() string {
	if a.Axis == 0 {
		return ""
	}
	return fmt.Sprintf("{axis %d}", a.Axis)
}

// Position adds the rows of table w [positions, d] at the positions of the step's tokens. Axis 0 is
// the position in the sequence; axes 1 and 2 are the second and third position of a token (for
// example, which of two texts it belongs to).
func (b *Builder) Position(w *tensor.Tensor, axis int) Value {
	b.matrix(w)
	if axis < 0 || axis > len(b.p.Axes) {
		b.Failf("%s: a token has no position of axis %d", w.Name, axis)
	}
	most := &b.p.Positions
	if axis > 0 {
		most = &b.p.Axes[axis-1]
	}
	if *most == 0 || w.Shape[0] < *most {
		*most = w.Shape[0]
	}
	return b.add(Node{Op: Position, Weight: w, State: NoState, Attr: PositionAttr{axis}}, Tokens, Dim(w.Shape[1]))
}
