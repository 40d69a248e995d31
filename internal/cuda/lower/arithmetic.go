package lower

import (
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A kind is a form in which products read their input.
type kind uint8

const (
	inFloats kind = iota
	inBF16
	inF16
	kinds
)

// arithmetic is how a product is computed: by its weight's format and by what
// activations the limits ask for, never by the size of a step.
func arithmetic(w *tensor.Tensor, lim *plan.Limits) kind {
	switch d := weights.LaidAs(w.DType, lim); {
	case lim.Activations == tensor.F32 || d == tensor.F32:
		return inFloats
	case d == tensor.BF16:
		return inBF16
	}
	return inF16
}

// half is the power of two with which float16 holds values up to most; where that is not
// known, 0, it holds up to four million.
func half(most float64) float32 {
	if most == 0 {
		return 1. / 64
	}
	_, e := math.Frexp(most) // most is below 2^e
	return float32(math.Ldexp(1, min(max(15-e, -100), 100)))
}

// divided is what values of f have been divided by in one form.
func divided(f device.Forms, k kind) float32 {
	if k == inF16 {
		return 1 / f.By
	}
	return 1
}
