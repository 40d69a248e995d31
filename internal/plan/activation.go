package plan

import "fmt"

// An Activation is the function that a [GLU] applies to its gate, or a [Map] to every element.
type Activation uint8

// The activations.
const (
	SiLU        Activation = iota // x / (1 + exp(-x))
	GELU                          // x/2 * (1 + erf(x/sqrt(2))) (Hendrycks and Gimpel, 2016)
	GELUTanh                      // x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715*x^3))), an approximation from the same paper
	ReLU                          // max(x, 0)
	ReLUSquared                   // max(x, 0)^2 (So et al., "Primer", 2021)
	Sigmoid                       // 1 / (1 + exp(-x))
	QuickGELU                     // x / (1 + exp(-1.702*x)), the other approximation of the paper
	Tanh                          // tanh(x)

	numActivations
)

var activationNames = [numActivations]string{"silu", "gelu", "gelu_tanh", "relu", "relu2", "sigmoid", "quick_gelu", "tanh"}

// String returns the activation's name as a program prints it.
func (a Activation) String() string {
	if a < numActivations {
		return activationNames[a]
	}
	return fmt.Sprintf("activation(%d)", uint8(a))
}

// Activations returns all activations.
func Activations() []Activation {
	all := make([]Activation, numActivations)
	for i := range all {
		all[i] = Activation(i)
	}
	return all
}
