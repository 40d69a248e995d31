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
	Softplus             // ln(1 + exp(x)) (Dugas et al., "Incorporating Second-Order Functional Knowledge", 2001)
	Clamp                // x, but at least -By and at most By
	XIELU                // see [Curve]
)

// A Curve holds the parameters of XIELU (Huang and Schlag, "Deriving Activation Functions Using
// Integration", 2024): x*(P*x + Beta) where x > 0, and N*(exp(min(x, Eps)) - 1 - x) + Beta*x elsewhere.
type Curve struct{ P, N, Beta, Eps float64 }

// MapAttr holds the parameters of [Map].
type MapAttr struct {
	Func  Func
	Act   Activation // for Activate
	By    float64    // for Scale, Softcap and Clamp
	Curve Curve      // for XIELU
}

func (a MapAttr) String() string {
	switch a.Func {
	case Scale:
		return fmt.Sprintf("{scale %.8g}", a.By)
	case Softcap:
		return fmt.Sprintf("{softcap %.8g}", a.By)
	case Softplus:
		return "{softplus}"
	case Clamp:
		return fmt.Sprintf("{clamp %.8g}", a.By)
	case XIELU:
		return fmt.Sprintf("{xielu %.6g %.6g, beta %.6g, eps %.6g}", a.Curve.P, a.Curve.N, a.Curve.Beta, a.Curve.Eps)
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

// Softplus adds ln(1 + exp(x)).
func (b *Builder) Softplus(x Value) Value { return b.apply(x, MapAttr{Func: Softplus}) }

// Clamp adds x bounded to -by..by. It returns x itself if by is 0.
func (b *Builder) Clamp(x Value, by float64) Value {
	if !(by >= 0 && by <= math.MaxFloat32) {
		b.Failf("map: cannot clamp to %v: want a positive number, or 0 for none", by)
	}
	if by == 0 {
		return x
	}
	return b.apply(x, MapAttr{Func: Clamp, By: by})
}

// XIELU adds the function of [Curve].
func (b *Builder) XIELU(x Value, c Curve) Value {
	for _, v := range []float64{c.P, c.N, c.Beta, c.Eps} {
		if !(math.Abs(v) <= math.MaxFloat32) {
			b.Failf("map: xielu with a parameter of %v", v)
		}
	}
	return b.apply(x, MapAttr{Func: XIELU, Curve: c})
}

func (b *Builder) apply(x Value, a MapAttr) Value {
	return b.add(Node{Op: Map, In: []Value{x}, State: NoState, Attr: a}, b.Rows(x), Dim(b.Cols(x)))
}
