//go:build unix

package modeltest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/tensor"
)

// NeedsFaults skips a test where the system does not say at which address reading
// a mapped file ends that was cut short, as emulators of other processors do not.
func NeedsFaults(tb testing.TB) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "cut")
	write(tb, path, make([]byte, os.Getpagesize()))
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	data, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = unix.Munmap(data) }()
	if err := os.Truncate(path, 0); err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if r := recover(); r != nil {
			tb.Skipf("the system does not say where reading ended: %v", r)
		}
	}()
	var first byte
	if err := tensor.Guard(func() error { first = data[0]; return nil }); err == nil {
		tb.Fatalf("a file that was cut short holds %d", first)
	}
}
