package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// activations maps activations to the functions of a GLU's gate.
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

// unitPiece is the number of elements that an activation handles at a time if it needs scratch
// memory.
const unitPiece = 256

// unitSpace is that scratch memory.
type unitSpace [3][unitPiece]float32

// quickGELU sets y to x * sigmoid(1.702*x) for at most unitPiece elements. It overwrites the last
// part of space.
func quickGELU(y, x []float32, space *unitSpace, glu func(y, gate, up []float32, a plan.Activation)) {
	s := space[2][:len(x)]
	for i, v := range x {
		s[i] = 1.702 * v
	}
	glu(y, s, x, plan.Sigmoid)
}
