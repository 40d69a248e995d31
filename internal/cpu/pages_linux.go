package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// preferLargePages asks the system to back b with large pages, which need fewer address
// translations. It has no effect if the system has none.
func preferLargePages(b []byte) {
	const page = 1 << 16 // not below the system's page size
	if skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (page - 1); len(b) > skip+page {
		_ = unix.Madvise(b[skip:skip+(len(b)-skip)&^(page-1)], unix.MADV_HUGEPAGE)
	}
}

// reserve returns n zero bytes outside the garbage collector's heap for long-lived data, in large
// pages if the system has them. Free it with release.
func reserve(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cpu: cannot allocate %d bytes: %w", n, err)
	}
	preferLargePages(b)
	return b, nil
}

// release frees memory from reserve.
func release(b []byte) {
	if b != nil {
		_ = unix.Munmap(b)
	}
}
