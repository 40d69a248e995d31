//go:build !amd64 && !arm64

package cpu

// pause does nothing, but costs a call.
//
//go:noinline
func pause() {}
