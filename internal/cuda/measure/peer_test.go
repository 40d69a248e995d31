package measure

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// openPair opens two devices of a fake driver, the second one with other memory than the first.
func openPair(t *testing.T, o drivertest.Options, second int) (f *drivertest.Fake, all [2]*device.GPU) {
	t.Helper()
	base := driver.Capability{Major: 8}
	o.Devices = []drivertest.Device{{Name: "left", Memory: 1 << 20, Capability: base}, {Name: "right", Memory: second, Capability: base}}
	f = drivertest.New(t, o)
	d := f.Driver()
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i], err = device.Open(d, devices[i], base, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := all[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return f, all
}

// Peer copies half of the memory of the device that has less, as often as it says. A copy of the fake
// driver takes a millisecond.
func TestPeer(t *testing.T) {
	f, all := openPair(t, drivertest.Options{}, 1<<19)
	for i, g := range all {
		rate, err := Peer(t.Context(), g, all[1-i])
		if want := 1e3 * float64(1<<18); err != nil || rate != want {
			t.Errorf("from device %d: %g bytes a second, %v; want %g", i, rate, err, want)
		}
	}
	if n := f.Calls("cuMemcpyDtoDAsync"); n != 2*peerRuns {
		t.Errorf("%d copies, want %d", n, 2*peerRuns)
	}
}

// A measurement that fails leaves nothing on either device: the fake driver checks that.
func TestPeerFails(t *testing.T) {
	for _, test := range []struct {
		what string
		o    drivertest.Options
		call string // that fails, the time with this number
		nth  int
		says string
	}{
		{what: "apart", o: drivertest.Options{Apart: true}, says: "device 0, left, does not reach device 1, right"},
		{what: "no room there", call: "cuMemAlloc", nth: 1, says: "making room for what another device writes"},
		{what: "no room here", call: "cuMemAlloc", nth: 2, says: "measuring the link to another device"},
		{what: "no copy", call: "cuMemcpyDtoDAsync", nth: 2, says: "measuring the link to another device"},
	} {
		t.Run(test.what, func(t *testing.T) {
			f, all := openPair(t, test.o, 1<<20)
			if test.call != "" {
				f.Fail(test.call, test.nth, driver.OutOfMemory)
			}
			_, err := Peer(t.Context(), all[0], all[1])
			if err == nil || !strings.Contains(err.Error(), test.says) || errors.Is(err, driver.ErrNoPeer) != test.o.Apart {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
	_, all := openPair(t, drivertest.Options{}, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Peer(ctx, all[0], all[1]); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
