package plan

import (
	"fmt"
	"math"
)

// GLU computes act(gate) * up (Shazeer, "GLU Variants Improve Transformer", 2020), see [GLUAttr].
var GLU = &Op{Name: "glu"}

// GLUAttr holds the parameters of [GLU]: act(gate) * (up + Shift). With a Limit, the gate is
// clamped to at most Limit and up to -Limit..Limit (OpenAI, "gpt-oss-120b & gpt-oss-20b Model
// Card", 2025); with Late it is act(gate) that is clamped instead of the gate (StepFun, "Step 3.5
// Flash", 2026). A gate with fewer columns than up applies each to as many consecutive columns of
// up: one column to the whole row, a column for each head to that head.
type GLUAttr struct {
	Act   Activation
	Limit float64 // 0: no limit
	Late  bool
	Shift float64
}

func (a GLUAttr) String() string {
	s := "{" + a.Act.String()
	if a.Limit > 0 {
		s += fmt.Sprintf(", limit %.6g", a.Limit)
		if a.Late {
			s += " late"
		}
	}
	if a.Shift != 0 {
		s += fmt.Sprintf(", shift %.6g", a.Shift)
	}
	return s + "}"
}

// GLU adds act(gate) * up with the parameters a.
func (b *Builder) GLU(gate, up Value, a GLUAttr) Value {
	switch {
	case b.Rows(gate) != b.Rows(up):
		b.Failf("glu: a gate of %v rows for %v", b.Rows(gate), b.Rows(up))
	case b.Cols(up)%b.Cols(gate) != 0:
		b.Failf("glu: a gate of %d columns for %d", b.Cols(gate), b.Cols(up))
	}
	b.glu(a)
	return b.add(Node{Op: GLU, In: []Value{gate, up}, State: NoState, Attr: a}, b.Rows(up), Dim(b.Cols(up)))
}

func (b *Builder) glu(a GLUAttr) {
	if a.Act >= numActivations {
		b.Failf("glu: unknown %v", a.Act)
	}
	if !(a.Limit >= 0 && a.Limit <= math.MaxFloat32 && math.Abs(a.Shift) <= math.MaxFloat32) {
		b.Failf("glu: a limit of %v and a shift of %v: want a positive number, or 0 for none", a.Limit, a.Shift)
	}
}
