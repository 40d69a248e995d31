package driver_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

var small = driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 32}}

func TestGraph(t *testing.T) {
	r := newRig(t, drivertest.Options{})
	within(t, r.c, func() error {
		p, err := r.c.Alloc(8)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return r.c.Free(p) })
		var a driver.Args
		a.Pointer(1)
		g, err := r.s.Capture(func() error {
			err := errors.Join(r.first.Launch(r.s, small, &a), r.s.Memset8(p, 5, 8), r.second.Launch(r.s, small, &a))
			a.Reset().Pointer(2) // the captured arguments stay unchanged
			return err
		})
		if err != nil {
			return err
		}
		if n, err := g.Nodes(); n != 3 || err != nil {
			t.Errorf("%d nodes, %v", n, err)
		}
		if n := len(r.Launches()); n != 0 {
			t.Errorf("%d kernels ran while they were captured", n)
		}
		x, err := g.Instantiate()
		if err != nil {
			return err
		}
		if err := errors.Join(g.Destroy(), g.Destroy(), x.Upload(r.s), x.Launch(r.s), r.s.Synchronize()); err != nil {
			return err
		}
		got := make([]byte, 8)
		if err := r.c.CopyToHost(got, p); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{5}, 8)) {
			t.Errorf("memory %v, %v", got, err)
		}
		if err := x.Launch(r.s); err != nil {
			return err
		}
		var ran []string
		for _, l := range r.Launches() {
			if !l.Graph || l.Params[0] != 1 {
				t.Errorf("not as captured: %+v", l)
			}
			ran = append(ran, l.Kernel)
		}
		if s := strings.Join(ran, " "); s != "first _Z6secondPf first _Z6secondPf" {
			t.Errorf("there ran %s", s)
		}
		if err := errors.Join(x.Destroy(), x.Destroy()); err != nil {
			return err
		}
		_, nodes := g.Nodes()
		_, instance := g.Instantiate()
		for what, err := range map[string]error{"Launch": x.Launch(r.s), "Upload": x.Upload(r.s), "Nodes": nodes, "Instantiate": instance} {
			if err == nil {
				t.Errorf("%s worked on a graph that was destroyed", what)
			}
		}
		return nil
	})
}

// However a capture ends, the stream works afterwards and nothing is left.
func TestCaptureEnds(t *testing.T) {
	mine := errors.New("mine")
	for _, test := range []struct {
		name string
		f    func(r *rig) error
		want func(error) bool
	}{
		{"an error", func(*rig) error { return mine }, func(err error) bool { return errors.Is(err, mine) }},
		{"a panic", func(*rig) error { panic("mine") }, func(err error) bool { return strings.Contains(err.Error(), "mine") }},
		{
			"memory is taken in it",
			func(r *rig) error {
				_, err := r.c.Alloc(1)
				return err
			},
			func(err error) bool { return strings.Contains(err.Error(), "cuMemAlloc: operation not permitted") },
		},
		{
			"a forbidden call whose error nobody reads",
			func(r *rig) error {
				if r.s.Synchronize() == nil {
					t.Error("waiting was allowed")
				}
				return nil
			},
			func(err error) bool { return strings.Contains(err.Error(), "CAPTURE_INVALIDATED") },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, drivertest.Options{})
			err := r.c.Do(func() error {
				_, err := r.s.Capture(func() error {
					if err := r.first.Launch(r.s, small, nil); err != nil {
						return err
					}
					return test.f(r)
				})
				return err
			})
			if err == nil || !test.want(err) {
				t.Errorf("got %v", err)
			}
			within(t, r.c, func() error { return errors.Join(r.first.Launch(r.s, small, nil), r.s.Synchronize()) })
			if n := len(r.Launches()); n != 1 {
				t.Errorf("%d kernels ran", n)
			}
		})
	}
}

func TestGraphFails(t *testing.T) {
	for _, call := range []string{"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphUpload", "cuGraphLaunch"} {
		t.Run(call, func(t *testing.T) {
			r := newRig(t, drivertest.Options{})
			r.Fail(call, 1, driver.OutOfMemory)
			err := r.c.Do(func() error {
				g, err := r.s.Capture(func() error { return r.first.Launch(r.s, small, nil) })
				if err != nil {
					return err
				}
				defer destroy(t, g.Destroy)
				x, err := g.Instantiate()
				if err != nil {
					return err
				}
				defer destroy(t, x.Destroy)
				if err := x.Upload(r.s); err != nil {
					return err
				}
				return x.Launch(r.s)
			})
			var e *driver.Error
			if !errors.As(err, &e) || e.Call != call || !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("got %v", err)
			}
		})
	}
}
