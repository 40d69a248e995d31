//go:build !amd64

package cpu

// sumLoops are the ways to compute sumWords.
func sumLoops() []func([]byte) uint64 { return []func([]byte) uint64{sumWords} }
