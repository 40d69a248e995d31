//go:build !amd64

package cpu

// productLoops returns none: compiled code would not reach the limit of the processor.
func productLoops() []peakLoop { return nil }

func floatLoops() []peakLoop { return nil }
