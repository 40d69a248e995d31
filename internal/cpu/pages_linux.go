package cpu

import (
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
