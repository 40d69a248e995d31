package cpu

// pause tells the processor that the caller waits in a loop.
//
//go:noescape
func pause()
