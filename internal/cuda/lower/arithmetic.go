package lower

import (
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A kind is a form of a value in which products read their input.
type kind uint8

const (
	inFloats kind = iota
	inBF16
	inF16
	kinds
)

// arithmetic returns how a product is computed. It depends on the weight's format and the
// activations in the limits, never on the size of a step.
func arithmetic(w *tensor.Tensor, lim *plan.Limits) kind {
	switch d := weights.LaidAs(w.DType, lim); {
	case lim.Activations == tensor.F32 || d == tensor.F32:
		return inFloats
	case d == tensor.BF16:
		return inBF16
	}
	return inF16
}

// half returns the power of two that scales float16 to hold values up to most. If most is unknown,
// 0, it holds values up to four million.
func half(most float64) float32 {
	if most == 0 {
		return 1. / 64
	}
	_, e := math.Frexp(most) // most is below 2^e
	return float32(math.Ldexp(1, min(max(15-e, -100), 100)))
}

// divided returns the number by which the values of f are divided in form k.
func divided(f device.Forms, k kind) float32 {
	if k == inF16 {
		return 1 / f.By
	}
	return 1
}
