package lower

import (
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A kind is a form in which products read their input.
type kind uint8

const (
	inFloats kind = iota
	inBytes
	inBF16
	inF16
	kinds
)

// arithmetic is how a product is computed: by its weight's format and by what
// activations the limits ask for, never by the size of a step.
func arithmetic(w *tensor.Tensor, lim *plan.Limits) kind {
	switch d := weights.LaidAs(w.DType, lim); {
	case lim.Activations != tensor.Q8_0 || d == tensor.F32:
		return inFloats
	case d == tensor.BF16:
		return inBF16
	case d == tensor.F16:
		return inF16
	}
	return inBytes
}
