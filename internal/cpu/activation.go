package cpu

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// activation is the function of a GLU's gate.
func activation(n *plan.Node) (func(float64) float64, error) {
	switch act := n.Attr.(plan.GLUAttr).Act; act {
	case plan.SiLU:
		return func(x float64) float64 { return x / (1 + math.Exp(-x)) }, nil
	default:
		return nil, fmt.Errorf("no activation %v", act)
	}
}
