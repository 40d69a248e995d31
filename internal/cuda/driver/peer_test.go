package driver_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// pair opens two devices. The test closes them at its end.
func pair(t *testing.T, o drivertest.Options) (all [2]*driver.Context) {
	t.Helper()
	o.Devices = []drivertest.Device{{Name: "Left", Memory: 1 << 20}, {Name: "Right", Memory: 1 << 20}}
	d := drivertest.New(t, o).Driver()
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i], err = d.NewContext(devices[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := all[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return all
}

// A device copies to the memory of another one once it is connected to it, by itself and on a
// stream. The connection has one direction.
func TestCopyToPeer(t *testing.T) {
	all := pair(t, drivertest.Options{})
	var at [2]driver.DevicePtr
	for i, c := range all {
		within(t, c, func() (err error) {
			at[i], err = c.Alloc(16)
			return err
		})
		defer within(t, c, func() error { return c.Free(at[i]) })
	}
	left, right := all[0], all[1]
	within(t, left, func() error {
		s, err := left.NewStream()
		if err != nil {
			return err
		}
		defer destroy(t, s.Destroy)
		if left.CopyOnDevice(at[1], at[0], 8) == nil || s.CopyOnDevice(at[1], at[0], 8) == nil {
			t.Error("a copy to a device that is not connected was done")
		}
		return errors.Join(
			left.Connect(left), left.Connect(right), left.Connect(right), left.CopyToDevice(at[0], []byte("from the left...")),
			left.CopyOnDevice(at[1], at[0], 8), s.CopyOnDevice(at[1]+8, at[0]+8, 8), s.Synchronize(),
		)
	})
	within(t, right, func() error {
		got := make([]byte, 16)
		err := right.CopyToHost(got, at[1])
		if !bytes.Equal(got, []byte("from the left...")) {
			t.Errorf("%q", got)
		}
		if right.CopyOnDevice(at[0], at[1], 8) == nil {
			t.Error("a copy against the direction of the connection was done")
		}
		return err
	})
}

// Devices that do not reach each other are named, with the command that shows which do.
func TestNoPeer(t *testing.T) {
	all := pair(t, drivertest.Options{Apart: true})
	within(t, all[0], func() error {
		err := all[0].Connect(all[1])
		if !errors.Is(err, driver.ErrNoPeer) {
			t.Fatal(err)
		}
		for _, part := range []string{"device 0, Left", "device 1, Right", "nvidia-smi topo -p2p rw"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v\ndoes not say %q", err, part)
			}
		}
		return all[0].Connect(all[0])
	})
}
