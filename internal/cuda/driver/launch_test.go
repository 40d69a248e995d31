package driver_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

const twoKernels = ".version 7.0\n.visible .entry first()\n{ ret; }\n.visible .entry _Z6secondPf(\n.param .u64 x)\n{ ret; }\n"

// A rig is a context with a stream and two kernels, destroyed at the end of the test.
type rig struct {
	*drivertest.Fake
	c             *driver.Context
	s             *driver.Stream
	first, second *driver.Function
}

func newRig(t *testing.T, options drivertest.Options) *rig {
	t.Helper()
	r := &rig{Fake: drivertest.New(t, options)}
	r.c = r.Context()
	within(t, r.c, func() error {
		var err error
		if r.s, err = r.c.NewStream(); err != nil {
			return err
		}
		m, err := r.c.LoadModule([]byte(twoKernels))
		if err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := r.c.Do(func() error { return errors.Join(m.Unload(), r.s.Destroy()) }); err != nil && !errors.Is(err, driver.ErrDeviceLost) {
				t.Error(err)
			}
		})
		if r.first, err = m.Function("first"); err != nil {
			return err
		}
		r.second, err = m.Function("_Z6secondPf")
		return err
	})
	return r
}

func TestModule(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	within(t, c, func() error {
		if _, err := c.LoadModule(nil); err == nil {
			t.Error("nothing was loaded")
		}
		m, err := c.LoadModule([]byte(twoKernels + ".maxnreg"))
		if err != nil {
			return err
		}
		if m.Log != "ptxas info    : register limit given" {
			t.Errorf("log %q", m.Log)
		}
		for name, found := range map[string]bool{"first": true, "_Z6secondPf": true, "fir": false, "second": false, "": false} {
			k, err := m.Function(name)
			if (err == nil) != found {
				t.Errorf("%q: %v", name, err)
			}
			if err == nil && k.Name() != name {
				t.Errorf("%q is called %q", name, k.Name())
			}
			if err != nil && !strings.HasSuffix(err.Error(), `(CUDA_ERROR_NOT_FOUND): kernel "`+name+`"`) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if err := errors.Join(m.Unload(), m.Unload()); err != nil {
			return err
		}
		if n := f.Calls("cuModuleUnload"); n != 1 {
			t.Errorf("unloaded %d times", n)
		}
		if _, err := m.Function("first"); err == nil {
			t.Error("a module that was unloaded has kernels")
		}
		return nil
	})
}

func TestFunction(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	within(t, r.c, func() error {
		a, err := r.first.Attributes()
		if want := (driver.FunctionAttributes{MaxThreadsPerBlock: 1024, SharedBytes: 256, LocalBytes: 16, Registers: 40}); a != want || err != nil {
			t.Errorf("%+v, %v", a, err)
		}
		if n, err := r.first.Occupancy(256, 0); n != 8 || err != nil {
			t.Errorf("%d blocks, %v", n, err)
		}
		shape := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}, Shared: 100 << 10}
		if err := r.first.Launch(r.s, shape, nil); err == nil {
			t.Error("100 KiB of shared memory were given unasked")
		}
		if err := r.first.SetMaxDynamicShared(1 << 20); err == nil || !strings.HasSuffix(err.Error(), "kernel first, 1048576 bytes of shared memory") {
			t.Errorf("1 MiB of shared memory: %v", err)
		}
		return errors.Join(r.first.SetMaxDynamicShared(100<<10), r.first.Launch(r.s, shape, nil))
	})
}

func TestArgs(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	shape := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}}
	var a driver.Args
	within(t, r.c, func() error {
		launch := func() []byte {
			if err := r.first.Launch(r.s, shape, &a); err != nil {
				t.Fatal(err)
			}
			all := r.Launches()
			return all[len(all)-1].Params
		}
		if got := launch(); got != nil {
			t.Errorf("no parameters: % x", got)
		}
		a.Uint32(1).Pointer(0x0807060504030201).Float32(1.5).Int32(-2).Struct([]byte{7, 8, 9}, 1).Struct([]byte{5}, 4).Uint64(math.MaxUint64)
		want := []byte{
			1, 0, 0, 0, 0, 0, 0, 0,
			1, 2, 3, 4, 5, 6, 7, 8,
			0, 0, 0xc0, 0x3f, 0xfe, 0xff, 0xff, 0xff,
			7, 8, 9, 0, 5, 0, 0, 0,
			255, 255, 255, 255, 255, 255, 255, 255,
		}
		for range 2 {
			if diff := cmp.Diff(want, launch()); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		}
		a.Reset().Uint32(3).Struct([]byte{1}, 0)
		if diff := cmp.Diff([]byte{3, 0, 0, 0, 1}, launch()); diff != "" {
			t.Errorf("other parameters (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestLaunch(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	var a driver.Args
	a.Pointer(16)
	params := []byte{16, 0, 0, 0, 0, 0, 0, 0}
	one := driver.Dim3{X: 1, Y: 1, Z: 1}
	within(t, r.c, func() error {
		for _, test := range []struct {
			f      *driver.Function
			config driver.LaunchConfig
			want   drivertest.Launch
		}{
			{
				r.first, driver.LaunchConfig{Grid: driver.Dim3{X: 3}, Block: driver.Dim3{X: 128}},
				drivertest.Launch{Kernel: "first", Grid: driver.Dim3{X: 3, Y: 1, Z: 1}, Block: driver.Dim3{X: 128, Y: 1, Z: 1}, Params: params},
			},
			{
				r.second, driver.LaunchConfig{Grid: driver.Dim3{X: 2, Y: 3, Z: 4}, Block: driver.Dim3{X: 5, Y: 6, Z: 7}, Shared: 8},
				drivertest.Launch{Kernel: "_Z6secondPf", Grid: driver.Dim3{X: 2, Y: 3, Z: 4}, Block: driver.Dim3{X: 5, Y: 6, Z: 7}, Shared: 8, Params: params},
			},
			{
				r.first, driver.LaunchConfig{Grid: one, Block: one, Cluster: driver.Dim3{X: 2, Y: 3}},
				drivertest.Launch{Kernel: "first", Grid: one, Block: one, Cluster: driver.Dim3{X: 2, Y: 3, Z: 1}, Params: params},
			},
			{
				r.first, driver.LaunchConfig{Grid: driver.Dim3{X: 9}, Block: one, Shared: 9, Programmatic: true},
				drivertest.Launch{Kernel: "first", Grid: driver.Dim3{X: 9, Y: 1, Z: 1}, Block: one, Shared: 9, Programmatic: true, Params: params},
			},
			{
				r.first, driver.LaunchConfig{Grid: one, Block: one, Carveout: 29},
				drivertest.Launch{Kernel: "first", Grid: one, Block: one, Carveout: 29, Params: params},
			},
			{
				r.first, driver.LaunchConfig{Grid: one, Block: one, Cluster: driver.Dim3{X: 2}, Carveout: 100, Programmatic: true},
				drivertest.Launch{Kernel: "first", Grid: one, Block: one, Cluster: driver.Dim3{X: 2, Y: 1, Z: 1}, Carveout: 100, Programmatic: true, Params: params},
			},
			{
				r.first, driver.LaunchConfig{Grid: one, Block: one, Cluster: driver.Dim3{X: 1, Y: 1, Z: 8}, Programmatic: true},
				drivertest.Launch{Kernel: "first", Grid: one, Block: one, Cluster: driver.Dim3{X: 1, Y: 1, Z: 8}, Programmatic: true, Params: params},
			},
		} {
			before := len(r.Launches())
			if err := test.f.Launch(r.s, test.config, &a); err != nil {
				return err
			}
			if diff := cmp.Diff([]drivertest.Launch{test.want}, r.Launches()[before:]); diff != "" {
				t.Errorf("launch (-want +got):\n%s", diff)
			}
		}
		return nil
	})
}

// A launch with early start does not start early if it is the stream's first after a wait, because
// it may first read what the wait was for. A graph waits as a whole.
func TestLaunchAfterWait(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	early := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}, Programmatic: true}
	within(t, r.c, func() (err error) {
		other, err := r.c.NewStream()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Destroy()) }()
		e, err := r.c.NewEvent()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.Destroy()) }()
		launch := func(s *driver.Stream) error { return r.first.Launch(s, early, nil) }
		wait := func(s *driver.Stream) error { return errors.Join(e.Record(other), s.Wait(e)) }
		g, err := r.s.Capture(func() error { return launch(r.s) })
		if err != nil {
			return err
		}
		x, err := g.Instantiate()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.Destroy(), x.Destroy()) }()
		for _, test := range []struct {
			name string
			do   func() error
			want []bool // whether each launch may begin early
		}{
			{"two launches", func() error { return errors.Join(launch(r.s), launch(r.s)) }, []bool{true, true}},
			{"after a wait", func() error { return errors.Join(wait(r.s), launch(r.s), launch(r.s)) }, []bool{false, true}},
			{"a record after it", func() error { return errors.Join(wait(r.s), e.Record(r.s), launch(r.s)) }, []bool{false}},
			{"another stream's wait", func() error { return errors.Join(wait(other), launch(r.s), launch(other)) }, []bool{true, false}},
			{"a graph", func() error { return errors.Join(wait(r.s), x.Launch(r.s), launch(r.s)) }, []bool{true, true}},
		} {
			before := len(r.Launches())
			if err := test.do(); err != nil {
				return err
			}
			var got []bool
			for _, l := range r.Launches()[before:] {
				got = append(got, l.Programmatic)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %v may begin early, want %v", test.name, got, test.want)
			}
		}
		return nil
	})
}

// Contexts of one device may launch each other's kernels.
func TestFunctionInAnotherContext(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	c := r.Context()
	one := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}}
	within(t, c, func() error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		if err := r.first.Launch(s, one, nil); err == nil {
			t.Error("a kernel was launched in another context than its own")
		}
		return errors.Join(r.first.In(c).Launch(s, one, nil), s.Destroy())
	})
	if l := r.Launches(); len(l) != 1 || l[0].Kernel != "first" {
		t.Errorf("launched were %v", l)
	}
}

func TestLaunchFails(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	other := newRig(t, drivertest.Options{})
	good := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 32}}
	within(t, r.c, func() error {
		for _, test := range []struct {
			name   string
			stream *driver.Stream
			config driver.LaunchConfig
			fail   driver.Code
			text   string
		}{
			{
				name: "too many threads", stream: r.s, config: driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 2048, Y: 2}},
				text: "cuda: cuLaunchKernel: invalid argument (CUDA_ERROR_INVALID_VALUE): kernel first, grid 1x1x1, block 2048x2x1, 0 bytes of shared memory",
			},
			{
				name: "no blocks, below zero", stream: r.s, config: driver.LaunchConfig{Block: driver.Dim3{X: -1}, Programmatic: true},
				text: "cuda: cuLaunchKernelEx: invalid argument (CUDA_ERROR_INVALID_VALUE): kernel first, grid 0x1x1, block -1x1x1, 0 bytes of shared memory",
			},
			{
				name: "another context's stream", stream: other.s, config: good,
				text: "cuda: cuLaunchKernel: invalid argument (CUDA_ERROR_INVALID_VALUE): kernel first: the stream is destroyed or another context's",
			},
			{
				name: "too many registers", stream: r.s, config: good, fail: driver.LaunchOutOfResources,
				text: "cuda: cuLaunchKernel: too many resources requested for launch (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES): kernel first, grid 1x1x1, block 32x1x1, 0 bytes of shared memory",
			},
			{
				name: "a kernel that failed", stream: r.s, config: good, fail: driver.LaunchFailed,
				text: "cuda: cuLaunchKernel: unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED): kernel first, grid 1x1x1, block 32x1x1, 0 bytes of shared memory" + lostAdvice,
			},
		} {
			if test.fail != 0 {
				r.Fail("cuLaunchKernel", 1, test.fail)
			}
			if err := r.first.Launch(test.stream, test.config, nil); err == nil || err.Error() != test.text {
				t.Errorf("%s:\ngot  %v\nwant %s", test.name, err, test.text)
			}
		}
		return nil
	})
	if n := len(r.Launches()) + len(other.Launches()); n != 0 {
		t.Errorf("%d kernels were launched", n)
	}
}

func TestTensorMap(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	within(t, r.c, func() error {
		m, err := r.c.EncodeTensorMap(driver.TiledTensor{
			Type: driver.TensorBFloat16, Address: 0x1000, Shape: []uint64{64, 5, 3}, Strides: []uint64{128, 640}, Box: []uint32{32, 4, 1},
			Swizzle: driver.Swizzle128, Promotion: driver.Promotion256, NaN: true,
		})
		if err != nil {
			return err
		}
		var a driver.Args
		a.Uint32(1).TensorMap(&m)
		if err := r.first.Launch(r.s, driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}}, &a); err != nil {
			return err
		}
		params := r.Launches()[0].Params
		if len(params) != 256 {
			t.Fatalf("%d bytes of parameters, want the map in the second 128 of 256", len(params))
		}
		got := make([]uint64, 16)
		for i := range got {
			got[i] = binary.LittleEndian.Uint64(params[128+8*i:])
		}
		want := []uint64{0x1000, 9 | 3<<8 | 3<<16 | 3<<24 | 1<<32, 64, 5, 3, 0, 0, 128, 640, 0, 0, 32 | 1<<32, 4 | 1<<32, 1 | 1<<32, 0, 0}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("map (-want +got):\n%s", diff)
		}
		for what, bad := range map[string]driver.TiledTensor{
			"no dimensions":        {},
			"six dimensions":       {Shape: make([]uint64, 6), Strides: make([]uint64, 5), Box: make([]uint32, 6)},
			"too many strides":     {Shape: make([]uint64, 2), Strides: make([]uint64, 2), Box: make([]uint32, 2)},
			"a box of other rank":  {Shape: make([]uint64, 2), Strides: make([]uint64, 1), Box: make([]uint32, 3)},
			"an address in a word": {Address: 8, Shape: make([]uint64, 1), Box: make([]uint32, 1)},
		} {
			if _, err := r.c.EncodeTensorMap(bad); err == nil {
				t.Errorf("%s: there is a map", what)
			}
		}
		return nil
	})
}
