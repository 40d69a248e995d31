//go:build !amd64

package cpu

// There are no loops yet for other processors: the compiler's own code would be
// no limit for anything.
func productLoops() []peakLoop { return nil }

func floatLoops() []peakLoop { return nil }
