//go:build !amd64 && !arm64

package cpu

// tiers returns the instruction sets of this processor, best first.
func tiers() []tier { return []tier{generic} }
