package plan

import (
	"fmt"
	"math"
)

// Temper scales rows by the positions of their tokens, see [TemperAttr].
var Temper = &Op{Name: "temper", Scope: ByToken}

// TemperAttr holds the parameters of [Temper]: a row at position p is multiplied by 1 + By * ln(1 +
// floor((p+Shift)/Every)). Queries that grow with the position keep attention over long contexts
// sharp (Nakanishi, "Scalable-Softmax Is Superior for Attention", 2025; Llama 4, Meta, 2025).
type TemperAttr struct {
	By    float64
	Every int // tokens; at least 1
	Shift int // added to positions
}

func (a TemperAttr) String() string {
	s := fmt.Sprintf("{by %.6g, every %d", a.By, a.Every)
	if a.Shift != 0 {
		s += fmt.Sprintf(", shift %d", a.Shift)
	}
	return s + "}"
}

// At returns the factor at a position.
func (a *TemperAttr) At(position int) float64 {
	return 1 + a.By*math.Log1p(float64((position+a.Shift)/a.Every))
}

// Temper adds x scaled by the positions of the step's tokens.
func (b *Builder) Temper(x Value, a TemperAttr) Value {
	if a.Every < 1 || a.Shift < 0 || !(math.Abs(a.By) < 1e30) {
		b.Failf("temper: %v: want tokens of at least 1, a shift of at least 0 and a number", a)
	}
	return b.add(Node{Op: Temper, In: []Value{x}, State: NoState, Attr: a}, Tokens, Dim(b.Cols(x)))
}
