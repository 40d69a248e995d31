package cpu

// pause tells the processor that the caller spins.
//
//go:noescape
func pause()
