package plan

import (
	"fmt"
	"math"
)

// Map applies a function to every element, see [MapAttr].
var Map = &Op{Name: "map"}

// A Func is a function that a [Map] applies to every element.
type Func uint8

// The functions.
const (
	Activate Func = iota // the activation [MapAttr.Act]
	Scale                // x * By
	Softcap              // By * tanh(x/By) (Gemma team, "Gemma 2", 2024)
)

// MapAttr holds the parameters of [Map].
type MapAttr struct {
	Func Func
	Act  Activation // for Activate
	By   float64    // for Scale and Softcap
}

func (a MapAttr) String() string {
	switch a.Func {
	case Scale:
		return fmt.Sprintf("{scale %.8g}", a.By)
	case Softcap:
		return fmt.Sprintf("{softcap %.8g}", a.By)
	}
	return fmt.Sprintf("{%v}", a.Act)
}

// Activate adds act(x).
func (b *Builder) Activate(x Value, act Activation) Value {
	if act >= numActivations {
		b.Failf("map: unknown %v", act)
	}
	return b.apply(x, MapAttr{Func: Activate, Act: act})
}

// Scale adds x * by. It returns x itself if by is 1.
func (b *Builder) Scale(x Value, by float64) Value {
	if !(math.Abs(by) <= math.MaxFloat32) {
		b.Failf("map: cannot scale by %v", by)
	}
	if by == 1 {
		return x
	}
	return b.apply(x, MapAttr{Func: Scale, By: by})
}

// Softcap adds by * tanh(x/by). It returns x itself if by is 0.
func (b *Builder) Softcap(x Value, by float64) Value {
	if !(by >= 0 && by <= math.MaxFloat32) {
		b.Failf("map: a softcap of %v bounds nothing: want a positive number, or 0 for none", by)
	}
	if by == 0 {
		return x
	}
	return b.apply(x, MapAttr{Func: Softcap, By: by})
}

func (b *Builder) apply(x Value, a MapAttr) Value {
	return b.add(Node{Op: Map, In: []Value{x}, State: NoState, Attr: a}, b.Rows(x), Dim(b.Cols(x)))
}
