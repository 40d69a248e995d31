package cpu

import "github.com/realizar/realizar/tensor"

// A tier is an instruction set and the kernels that use it.
type tier struct {
	name      string
	dots      dots
	rows      map[tensor.DType]dequantizer
	stored    map[tensor.DType]storedDots
	vector    *vectorKernels
	attention *attentionKernels
	quantized *quantizedKernels
}

var generic = tier{name: "generic", dots: dotsGeneric, vector: &vectorGeneric, attention: &attentionGeneric, quantized: &quantizedGeneric}
