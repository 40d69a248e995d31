package cpu

// vectorKernels work on whole rows of float32.
type vectorKernels struct {
	quantize func(record []byte, x []float32, lo, hi int)
}

var vectorGeneric = vectorKernels{
	quantize: quantizeGeneric,
}
