//go:build !linux

package cpu

// preferLargePages does nothing: the system decides.
func preferLargePages([]byte) {}

// reserve is memory of n bytes for what lives long and is read much.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// release gives back what reserve has given.
func release([]byte) {}
