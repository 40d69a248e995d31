package cuda

import (
	"errors"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/lower"
)

// Each mask is copied to the device with the first step that uses it, adjacent masks in one copy.
// Rows hold the index of their mask.
func TestMasksArrive(t *testing.T) {
	for _, stream := range []int{-1, 0, 2} {
		b, f := openFake(t, drivertest.Options{}, Options{})
		p := deep(t)
		lim := limitsFor(p, 8, 5)
		if stream >= 0 {
			lim = streams[stream].limited(b, p, lim)
		}
		e := compiled(t, b, p, lim)
		table := make([][]uint32, lim.Masks)
		for i := range table {
			table[i] = make([]uint32, p.MaskWords())
		}
		set := func(id int32, first uint32) {
			t.Helper()
			mask := slices.Repeat([]uint32{first}, p.MaskWords())
			table[id-1] = slices.Clone(mask)
			if err := e.SetMask(id, mask); err != nil {
				t.Fatal(err)
			}
			clear(mask) // the caller may reuse it
		}
		plain := 0
		step := func(copies int, masks ...int32) {
			t.Helper()
			x := batchOf(p, len(masks), 0, 1)
			for i, id := range masks {
				x.Rows[i].Mask = id
			}
			before := f.Calls("cuMemcpyHtoDAsync")
			if err := run(e, x); err != nil {
				t.Fatal(err)
			}
			n := f.Calls("cuMemcpyHtoDAsync") - before
			if plain == 0 {
				plain = n
			}
			if n -= plain; n != copies && !e.rotation.Staging() { // staging copies layers at its own pace
				t.Errorf("layers stream as %d: a step of the masks %v makes %d copies of masks, want %d", stream, masks, n, copies)
			}
			params, all := make([]byte, lower.ParamsBytes*len(masks)), make([]byte, lim.MaskBytes(p))
			err := b.Main.Do(func() error {
				return errors.Join(b.Main.CopyToHost(params, e.scratchAt+driver.DevicePtr(e.room.Params)), b.Main.CopyToHost(all, e.scratchAt+driver.DevicePtr(e.room.Masks)))
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range masks {
				if r := device.Words[lower.RowParams](params)[i]; r.Mask != id-1 {
					t.Errorf("row %d is told mask %d, want %d", i, r.Mask, id-1)
				}
				if id > 0 && !slices.Equal(device.Words[uint32](all)[int(id-1)*p.MaskWords():][:p.MaskWords()], table[id-1]) {
					t.Errorf("layers stream as %d: mask %d is another one on the device", stream, id)
				}
			}
		}
		step(0, 0, 0)
		step(0, 3, 0) // mask 0 was never set
		for _, id := range []int32{2, 9, 1, 4, 10, 6} {
			set(id, uint32(id))
		}
		step(2, 4, 2, 2, 0, 1)
		step(0, 2, 4, 1)
		step(2, 9, 10, 6, 2)
		set(2, 77)
		set(2, 78)
		set(1, 79)
		step(1, 2)
		step(1, 1, 2)
		set(3, 80)
		step(1, 3, 1, 9)
	}
}

// If the host has no memory for masks, SetMask fails. It may succeed later.
func TestMasksNeedMemory(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := deep(t)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	mask := make([]uint32, p.MaskWords())
	f.Fail("cuMemHostAlloc", 1, driver.OutOfMemory)
	if err := e.SetMask(1, mask); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("no memory: %v", err)
	}
	f.Mend()
	mask[0] = 6
	x := batchOf(p, 1, 0, 1)
	x.Rows[0].Mask = 1
	// A step that fails to launch leaves its mask to the next.
	if err := e.SetMask(1, mask); err != nil {
		t.Fatal(err)
	}
	for _, failing := range []bool{true, false} {
		if failing {
			f.Fail("cuMemcpyHtoDAsync", 2, driver.LaunchOutOfResources)
		}
		if err := run(e, x); (err != nil) != failing {
			t.Errorf("failing: %v: %v", failing, err)
		}
		f.Mend()
	}
	got := make([]byte, 4)
	if err := b.Main.Do(func() error { return b.Main.CopyToHost(got, e.scratchAt+driver.DevicePtr(e.room.Masks)) }); err != nil || device.Words[uint32](got)[0] != 6 {
		t.Errorf("the device has %v (%v)", got, err)
	}
}
