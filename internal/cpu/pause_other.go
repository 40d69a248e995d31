//go:build !amd64 && !arm64

package cpu

// pause takes a moment.
//
//go:noinline
func pause() {}
