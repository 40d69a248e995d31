package driver_test

import (
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// A step allocates nothing. The fake's own functions allocate, so the test makes them do nothing.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	r := newRig(t, drivertest.Options{Hollow: []string{
		"cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemsetD32Async",
		"cuEventRecord", "cuEventQuery", "cuEventSynchronize", "cuStreamWaitEvent", "cuStreamSynchronize",
	}})
	var a driver.Args
	a.Pointer(1).Uint32(2)
	with := driver.LaunchConfig{Grid: driver.Dim3{X: 4}, Block: driver.Dim3{X: 32}, Cluster: driver.Dim3{X: 2}, Programmatic: true}
	within(t, r.c, func() error {
		g, err := r.s.Capture(func() error { return nil })
		if err != nil {
			return err
		}
		defer destroy(t, g.Destroy)
		x, err := g.Instantiate()
		if err != nil {
			return err
		}
		defer destroy(t, x.Destroy)
		e, err := r.c.NewEvent()
		if err != nil {
			return err
		}
		defer destroy(t, e.Destroy)
		host, err := r.c.AllocHost(64)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return r.c.FreeHost(host) })

		for _, test := range []struct {
			name string
			run  func() error
		}{
			{"launch", func() error { return r.first.Launch(r.s, small, &a) }},
			{"launch with attributes", func() error { return r.first.Launch(r.s, with, &a) }},
			{"parameters", func() error { return r.first.Launch(r.s, small, a.Reset().Pointer(3).Uint32(4)) }},
			{"graph", func() error { return x.Launch(r.s) }},
			{"copy to the device", func() error { return r.s.CopyToDevice(1, host[:32]) }},
			{"copy to the host", func() error { return r.s.CopyToHost(host[32:], 1) }},
			{"words", func() error { return r.s.Memset32(1, 2, 3) }},
			{"record", func() error { return e.Record(r.s) }},
			{"wait", func() error { return r.s.Wait(e) }},
			{"synchronize", r.s.Synchronize},
			{"synchronize event", e.Synchronize},
			{"query", func() error {
				_, err := e.Query()
				return err
			}},
			{"doing", func() error {
				defer r.c.Doing(r.c.Doing("a step"))
				return nil
			}},
		} {
			var failed error
			n := testing.AllocsPerRun(200, func() {
				if err := test.run(); err != nil {
					failed = err
				}
			})
			if n != 0 || failed != nil {
				t.Errorf("%s: %v allocations, %v", test.name, n, failed)
			}
		}
		return nil
	})

	nothing := func() error { return nil }
	var failed error
	n := testing.AllocsPerRun(200, func() {
		if err := r.c.Do(nothing); err != nil {
			failed = err
		}
	})
	if n != 0 || failed != nil {
		t.Errorf("Do: %v allocations, %v", n, failed)
	}
}

func BenchmarkLaunch(b *testing.B) {
	f := drivertest.New(b, drivertest.Options{Hollow: []string{"cuLaunchKernel"}})
	c := f.Context()
	err := c.Do(func() error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		defer destroy(b, s.Destroy)
		m, err := c.LoadModule([]byte(twoKernels))
		if err != nil {
			return err
		}
		defer destroy(b, m.Unload)
		k, err := m.Function("first")
		if err != nil {
			return err
		}
		var a driver.Args
		a.Pointer(1).Uint32(2)
		b.ReportAllocs()
		for b.Loop() {
			if err := k.Launch(s, small, &a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
