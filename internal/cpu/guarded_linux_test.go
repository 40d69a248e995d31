package cpu

import (
	"testing"

	"golang.org/x/sys/unix"
)

// guarded returns n bytes of memory followed by a page whose access ends the process.
func guarded(t testing.TB, n int) []byte {
	page := unix.Getpagesize()
	size := (n+page-1)/page*page + page
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(m[size-page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m[size-page-n : size-page : size-page]
}
