package cpu

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// vectorKernels work on rows of float32. All slices of a call have the same length, unless
// documented otherwise.
type vectorKernels struct {
	quantize func(record []byte, x []float32, lo, hi int)   // see quantizeGeneric
	sum      func(x []float32) float64                      // sum of x[i]
	squares  func(x []float32, center float64) float64      // sum of (x[i]-center)^2
	scale    func(y, x, w []float32, by float32)            // y = x*by*w
	center   func(y, x, w, b []float32, mean, by float64)   // y = (x-mean)*by*w + b
	glu      func(y, gate, up []float32, a plan.Activation) // y = a(gate)*up
	add      func(y, x, z []float32)                        // y = x+z
	finite   func(x []float32) bool                         // whether no value is NaN or infinite
	maxima   sample.Maxima

	// rotate rotates the Dims elements from First on of each head of x, a row of heads. cos and sin
	// are [Dims/2], or [Dims] with each value twice if pairs are neighbors. The rest of a head is
	// not written.
	rotate func(y, x, cos, sin []float32, a *plan.RopeAttr)
}

var vectorGeneric = vectorKernels{
	quantize: quantizeGeneric,
	sum:      sumGeneric,
	squares:  squaresGeneric,
	scale:    scaleGeneric,
	center:   centerGeneric,
	glu:      gluGeneric,
	add:      addGeneric,
	finite:   finiteGeneric,
	maxima:   sample.MaximaOf,
	rotate:   rotateGeneric,
}

func addGeneric(y, x, z []float32) {
	for i, v := range x {
		y[i] = v + z[i]
	}
}

func finiteGeneric(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
