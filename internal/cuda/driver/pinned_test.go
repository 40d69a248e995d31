package driver

import (
	"testing"
	"unsafe"
)

// The bytes of TestPinned: those of a local variable move with the goroutine's stack.
var pinnedBytes [64]byte

func TestPinned(t *testing.T) {
	b := pinnedBytes[:]
	start := uintptr(unsafe.Pointer(&b[0]))
	c := &Context{host: &hostMemory{blocks: []pinned{{start + 8, 8, nil}, {start + 16, 8, nil}, {start + 40, 8, nil}}}}
	for _, test := range []struct {
		lo, hi int
		want   bool
	}{
		{0, 8, false}, {7, 9, false}, {8, 16, true}, {9, 10, true}, {15, 17, false}, {8, 24, false},
		{16, 24, true}, {20, 25, false}, {24, 32, false}, {32, 48, false}, {40, 48, true}, {47, 48, true}, {40, 49, false}, {48, 50, false},
	} {
		if got := c.host.has(b[test.lo:test.hi]); got != test.want {
			t.Errorf("bytes %d to %d: %v", test.lo, test.hi, got)
		}
		reach := DevicePtr(0)
		if test.want {
			reach = DevicePtr(start) + DevicePtr(test.lo)
		}
		if got := c.Reach(b[test.lo:test.hi]); got != reach {
			t.Errorf("bytes %d to %d: kernels find them at %#x, want %#x", test.lo, test.hi, got, reach)
		}
	}
}
