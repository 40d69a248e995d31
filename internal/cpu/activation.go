package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// activations are the functions of a GLU's gate.
var activations = map[plan.Activation]func(x float64) float64{
	plan.SiLU: func(x float64) float64 { return x / (1 + math.Exp(-x)) },
	plan.GELU: func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
	plan.GELUTanh: func(x float64) float64 {
		// (1+tanh(u))/2 is 1/(1+exp(-2u)).
		return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	},
	plan.ReLU:        relu,
	plan.ReLUSquared: func(x float64) float64 { return relu(x) * relu(x) },
	plan.Sigmoid:     func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	plan.QuickGELU:   func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) },
	plan.Tanh:        math.Tanh,
}

// relu keeps NaN.
func relu(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x
}

func gluGeneric(y, gate, up []float32, act plan.Activation) {
	f := activations[act]
	for i, g := range gate {
		y[i] = float32(f(float64(g))) * up[i]
	}
}

// functionOf is the function of a [plan.Map].
func functionOf(a plan.MapAttr) func(x float64) float64 {
	switch a.Func {
	case plan.Scale:
		return func(x float64) float64 { return x * a.By }
	case plan.Softcap:
		return func(x float64) float64 { return a.By * math.Tanh(x/a.By) }
	}
	return activations[a.Act]
}

// unitOf is the function of a [plan.GLU].
func unitOf(a plan.GLUAttr) func(gate, up float64) float64 {
	f := activations[a.Act]
	return func(gate, up float64) float64 {
		if a.Limit > 0 {
			gate, up = min(gate, a.Limit), max(-a.Limit, min(up, a.Limit))
		}
		return f(gate) * (up + a.Shift)
	}
}
