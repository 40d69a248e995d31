package cpu

import "github.com/realizar/realizar/tensor"

// A tier is a set of instructions and the kernels that use it.
type tier struct {
	name string
	dots dots
	rows map[tensor.DType]dequantizer
}

var generic = tier{name: "generic", dots: dotsGeneric}
