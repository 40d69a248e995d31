package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// preferLargePages asks for pages of some megabytes below b, which saves lookups of addresses.
// Where the system has none, nothing changes.
func preferLargePages(b []byte) {
	const page = 1 << 16 // of no less than the system has
	if skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (page - 1); len(b) > skip+page {
		_ = unix.Madvise(b[skip:skip+(len(b)-skip)&^(page-1)], unix.MADV_HUGEPAGE)
	}
}

// reserve is memory of n bytes for what lives long and is read much: zeros, in
// large pages where the system has them, that the garbage collector knows nothing
// of. It is given back by release.
func reserve(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cpu: no %d bytes of memory: %w", n, err)
	}
	preferLargePages(b)
	return b, nil
}

// release gives back what reserve has given.
func release(b []byte) {
	if b != nil {
		_ = unix.Munmap(b)
	}
}
