//go:build !linux

package cpu

// preferLargePages does nothing: the system decides.
func preferLargePages([]byte) {}

// reserve returns n zero bytes for long-lived data.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// release does nothing: the garbage collector frees memory from reserve.
func release([]byte) {}
