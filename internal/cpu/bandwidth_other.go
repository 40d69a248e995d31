//go:build !amd64

package cpu

// sumLoops returns the implementations of sumWords.
func sumLoops() []func([]byte) uint64 { return []func([]byte) uint64{sumWords} }
