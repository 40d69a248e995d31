//go:build !amd64 && !arm64

package cpu

// tiers are the sets of instructions that this processor has, the best first.
func tiers() []tier { return []tier{generic} }
