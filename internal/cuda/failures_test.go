package cuda

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/tensor"
)

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		options drivertest.Options
		device  int
		is      error
		text    string
	}{
		{
			name: "too old", options: drivertest.Options{Devices: []drivertest.Device{{Name: "Tesla T4", Memory: 1 << 30, Capability: driver.Capability{Major: 7, Minor: 5}}}},
			is: ErrCapability, text: "cuda: the GPU's compute capability is below 8.0: Tesla T4 has 7.5; use --device cpu",
		},
		{name: "past the last", device: 1, is: driver.ErrNoDevice, text: "device 1 of 1; CUDA_VISIBLE_DEVICES selects the visible devices"},
		{name: "negative", device: -1, is: driver.ErrNoDevice, text: "device -1 of 1"},
	} {
		f := drivertest.New(t, test.options)
		_, err := Open(Options{Driver: f.Driver(), Device: test.device})
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.text)
		}
	}
	// The first context exists when the second one fails.
	f := drivertest.New(t, drivertest.Options{})
	f.Fail("cuDevicePrimaryCtxRetain", 2, driver.OutOfMemory)
	if _, err := Open(Options{Driver: f.Driver()}); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("the second context: %v", err)
	}
}

// kept lists what an executable allocated and has not freed.
func kept(f *drivertest.Fake) string {
	var all []string
	for _, what := range strings.Split(f.Live(), ", ") {
		if !strings.HasSuffix(what, " context") && !strings.HasSuffix(what, " module") {
			all = append(all, what)
		}
	}
	return strings.Join(all, ", ")
}

// If any allocation fails, the error names its purpose and the amount of memory, everything
// allocated is freed, and the backend still works.
func TestOutOfMemory(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	lim := limitsFor(p, 8, 2)
	numbers := regexp.MustCompile(`\d+ bytes wanted, \d+ of \d+ bytes free$`)
	said := map[string]bool{}
	for n := 1; ; n++ {
		f.Fail("cuMemAlloc", n, driver.OutOfMemory)
		x, err := b.Compile(context.Background(), p, lim, nil)
		if err == nil {
			f.Mend()
			if err := errors.Join(run(x, batchOf(p, 2, 0, 1)), x.Close()); err != nil {
				t.Error(err)
			}
			break
		}
		what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "cuda: cuda: "), ": cuMemAlloc: ")
		said[what] = true
		if !errors.Is(err, driver.ErrOutOfMemory) || !numbers.MatchString(err.Error()) {
			t.Errorf("call %d: %v", n, err)
		}
		if left := kept(f); left != "" {
			t.Errorf("call %d: left are %s", n, left)
		}
	}
	for _, what := range []string{"weights", "states", "scratch", "page tables"} {
		if !said["making room for "+what] {
			t.Errorf("no error speaks of making room for %s; they speak of %v", what, said)
		}
	}
}

// Each call of loading, of a step and of closing may fail. The error names the call, nothing leaks,
// and later work succeeds.
func TestFailures(t *testing.T) {
	for _, eager := range []bool{false, true} {
		b, f := openFake(t, drivertest.Options{}, Options{Eager: eager})
		p := decoder(t, tensor.F16)
		lim := limitsFor(p, 8, 2)
		use := func() (err error) {
			x, err := b.Compile(context.Background(), p, lim, nil)
			if err != nil {
				return err
			}
			defer func() {
				if closed := x.Close(); closed != nil {
					t.Errorf("Close after %v: %v", err, closed)
				}
			}()
			masked := func() error {
				if err := x.SetMask(1, make([]uint32, p.MaskWords())); err != nil {
					return err
				}
				b := batchOf(p, 2, 0, 3)
				b.Rows[0].Mask = 1
				return run(x, b)
			}
			if err = masked(); err != nil {
				if again := masked(); again != nil {
					t.Errorf("the step after %v: %v", err, again)
				}
			}
			return err
		}
		if err := use(); err != nil { // loads the kernels
			t.Fatal(err)
		}
		for _, call := range []string{
			"cuStreamCreate", "cuMemAlloc", "cuMemHostAlloc", "cuEventCreate", "cuMemcpyHtoDAsync", "cuMemcpyHtoD", "cuMemsetD8", "cuLaunchKernel",
			"cuLaunchKernelEx", "cuEventRecord", "cuEventSynchronize", "cuStreamBeginCapture", "cuStreamEndCapture",
			"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuMemcpyDtoHAsync",
		} {
			before := f.Calls(call)
			if err := use(); err != nil {
				t.Fatal(err)
			}
			calls := f.Calls(call) - before
			if graphs := strings.Contains(call, "Capture") || strings.Contains(call, "Graph"); calls == 0 && (!eager || !graphs) {
				t.Errorf("%s is not called", call)
			}
			for n := 1; n <= calls; n++ {
				f.Fail(call, n, driver.LaunchOutOfResources)
				var e *driver.Error
				if err := use(); !errors.As(err, &e) || e.Call != call || errors.Is(err, driver.ErrDeviceLost) {
					t.Errorf("%s, call %d of %d: error %v", call, n, calls, err)
				}
				f.Mend()
			}
			if left := kept(f); left != "" {
				t.Errorf("after failures of %s are left %s", call, left)
			}
		}
	}
}

// If the driver refuses code, the error includes the compiler's message.
func TestModuleRefused(t *testing.T) {
	b, f := openFake(t, drivertest.Options{Refused: "norm"}, Options{})
	p := decoder(t, tensor.F16)
	_, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), nil)
	for _, part := range []string{"loading the kernels norm: cuModuleLoadDataEx: ", "ptxas error   : the kernel norm is refused"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	if left := kept(f); left != "" {
		t.Errorf("left are %s", left)
	}
}

// If the device is lost, running steps and all later ones fail. Only Close still works.
func TestDeviceLost(t *testing.T) {
	for _, call := range []string{"cuEventSynchronize", "cuMemcpyHtoDAsync", "cuGraphLaunch"} {
		f := drivertest.New(t, drivertest.Options{})
		b, err := Open(Options{Driver: f.Driver()})
		if err != nil {
			t.Fatal(err)
		}
		p := decoder(t, tensor.F16)
		x, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(x, batchOf(p, 1, 0, 3)); err != nil {
			t.Fatal(err)
		}
		release := f.Hold("cuEventSynchronize")
		first, err := x.Submit(batchOf(p, 1, 3, 1))
		if err != nil {
			t.Fatal(err)
		}
		f.Fail(call, 1, driver.IllegalAddress)
		second, err := x.Submit(batchOf(p, 1, 4, 1))
		if (err == nil) != (call == "cuEventSynchronize") {
			t.Errorf("%s fails: Submit says %v", call, err)
		}
		release()
		if _, err := first.Wait(context.Background()); !errors.Is(err, driver.ErrDeviceLost) {
			t.Errorf("%s fails: the step under way ends with %v", call, err)
		}
		if second != nil {
			if _, err := second.Wait(context.Background()); !errors.Is(err, driver.ErrDeviceLost) {
				t.Errorf("%s fails: the one after it ends with %v", call, err)
			}
		}
		for range 3 {
			if err := run(x, batchOf(p, 1, 4, 1)); !errors.Is(err, driver.ErrDeviceLost) {
				t.Errorf("%s fails: a later step says %v", call, err)
			}
		}
		if _, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), nil); !errors.Is(err, driver.ErrDeviceLost) {
			t.Errorf("%s fails: Compile says %v", call, err)
		}
		if err := errors.Join(x.Close(), x.Close(), b.Close(), b.Close()); err != nil {
			t.Errorf("%s fails: Close says %v", call, err)
		}
	}
}
