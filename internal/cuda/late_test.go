package cuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// Choose adds to a late step the launches that sample its tokens, with the masks set until then.
func TestLateStep(t *testing.T) {
	for _, stream := range []int{-1, 0, 2} {
		b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
		p := deep(t)
		lim := limitsFor(p, 8, 5)
		if stream >= 0 {
			lim = streams[stream].limited(b, p, lim)
		}
		e := compiled(t, b, p, lim)
		sampling := func(from int) bool {
			return slices.ContainsFunc(f.Launches()[from:], func(l drivertest.Launch) bool { return strings.HasPrefix(l.Kernel, "choose") })
		}
		x := batchOf(p, 2, 0, 1)
		x.Rows[0].Mask, x.Late = 3, true
		for range 2 {
			before := len(f.Launches())
			step, err := e.Submit(x)
			if err != nil {
				t.Fatal(err)
			}
			e.conducted()
			if len(f.Launches()) == before || sampling(before) {
				t.Errorf("layers stream as %d: a late step was not begun, or has chosen its tokens", stream)
			}
			if _, err := e.Submit(batchOf(p, 1, 0, 1)); err == nil {
				t.Error("a step was submitted before the one before could choose")
			}
			if err := e.SetMask(3, slices.Repeat([]uint32{0xabc}, p.MaskWords())); err != nil {
				t.Fatal(err)
			}
			if err := e.Choose(step); err != nil {
				t.Fatal(err)
			}
			if err := e.Choose(step); err == nil {
				t.Error("a step chose twice")
			}
			if _, err := step.Wait(context.Background()); err != nil || !sampling(before) {
				t.Errorf("layers stream as %d: %v, or no sampling", stream, err)
			}
			step.Release()
			got := make([]byte, lim.MaskBytes(p))
			if err := b.Main.Do(func() error { return b.Main.CopyToHost(got, e.scratchAt+driver.DevicePtr(e.room.Masks)) }); err != nil {
				t.Fatal(err)
			}
			if word := device.Words[uint32](got)[2*p.MaskWords()]; word != 0xabc {
				t.Errorf("the device has the mask %#x", word)
			}
		}
		if _, err := e.Submit(x); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("layers stream as %d: closed before a late step could choose: %v", stream, err)
		}
	}
}

// A late step that cannot choose, or cannot begin, fails alone.
func TestLateStepFails(t *testing.T) {
	for _, stream := range []int{-1, 2} {
		b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
		p := deep(t)
		lim := limitsFor(p, 8, 5)
		if stream >= 0 {
			lim = streams[stream].limited(b, p, lim)
		}
		e := compiled(t, b, p, lim)
		x := batchOf(p, 2, 0, 1)
		x.Late = true
		step, err := e.Submit(x)
		if err != nil {
			t.Fatal(err)
		}
		e.conducted()
		f.Fail("cuLaunchKernelEx", 1, driver.LaunchOutOfResources)
		if err := e.Choose(step); err == nil {
			t.Error("Choose could not launch and is no error")
		}
		f.Mend()
		if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
			t.Errorf("after a step that was lost: %v", err)
		}
		f.Fail("cuLaunchKernelEx", 1, driver.LaunchOutOfResources)
		step, err = e.Submit(x)
		if err == nil {
			if err = e.Choose(step); err != nil {
				t.Errorf("a step whose beginning failed cannot choose: %v", err)
			}
			_, err = step.Wait(context.Background())
			step.Release()
		}
		if !errors.As(err, new(*driver.Error)) {
			t.Errorf("a late step could not begin: %v", err)
		}
		f.Mend()
		if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
			t.Errorf("after a step that could not begin: %v", err)
		}
	}
}
