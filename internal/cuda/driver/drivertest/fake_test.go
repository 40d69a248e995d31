package drivertest_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// A recorder is a testing.TB that records its failures.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func TestLeaks(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func(c *driver.Context) error
		want string
	}{
		{"nothing", func(*driver.Context) error { return nil }, ""},
		{
			"some",
			func(c *driver.Context) error {
				_, a := c.Alloc(1)
				_, b := c.Alloc(1)
				_, h := c.AllocHost(1)
				_, e := c.NewEvent()
				m, f := c.LoadModule([]byte(".version .entry k("))
				s, err := c.NewStream()
				if err := errors.Join(a, b, h, e, f, err); err != nil {
					return err
				}
				g, err := s.Capture(func() error { return nil })
				if err != nil {
					return err
				}
				_, err = g.Instantiate()
				_, k := m.Function("k")
				return errors.Join(err, k)
			},
			"1 event, 1 graph, 1 graph exec, 1 host memory, 2 memory, 1 module, 1 stream",
		},
	} {
		r := &recorder{TB: t}
		f := drivertest.New(r, drivertest.Options{})
		c := f.Context()
		if err := c.Do(func() error { return test.f(c) }); err != nil {
			t.Fatal(err)
		}
		r.end()
		got := fmt.Sprintf("%q", r.errors)
		want := "[]"
		if test.want != "" {
			want = fmt.Sprintf("%q", []string{"the test left in the driver: " + test.want})
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", test.name, got, want)
		}
	}
}

func TestFail(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	f.Fail("cuCtxSynchronize", 2, driver.OutOfMemory)
	f.Fail("cuCtxSynchronize", 4, driver.LaunchFailed)
	var got []driver.Code
	err := c.Do(func() error {
		for range 5 {
			var e *driver.Error
			if errors.As(c.Synchronize(), &e) {
				got = append(got, e.Code)
			} else {
				got = append(got, driver.Success)
			}
		}
		return nil
	})
	if want := []driver.Code{0, driver.OutOfMemory, 0, driver.LaunchFailed, driver.LaunchFailed}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v, %v", got, want, err)
	}
	if n := f.Calls("cuCtxSynchronize"); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
}

func TestMend(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	f.Fail("cuCtxSynchronize", 1, driver.LaunchFailed)
	f.Mend()
	if err := c.Do(c.Synchronize); err != nil {
		t.Error(err)
	}
}

// A held call waits. Calls on other threads continue.
func TestHold(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	held, other := f.Context(), f.Context()
	release := f.Hold("cuCtxSynchronize")
	done := make(chan error)
	go func() { done <- held.Do(held.Synchronize) }()
	for f.Calls("cuCtxSynchronize") == 0 {
		runtime.Gosched()
	}
	if err := other.Do(func() error {
		_, _, err := other.MemInfo()
		return err
	}); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Errorf("the call did not wait: %v", err)
	default:
	}
	release()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := other.Do(other.Synchronize); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{Refused: "bad"})
	c := f.Context()
	err := c.Do(func() error {
		for name, refused := range map[string]bool{"good": false, "bad": true} {
			m, err := c.LoadModule([]byte(".version .entry " + name + "()"))
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "ptxas error   : the kernel bad is refused") {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				if err := m.Unload(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCapability(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{{Name: "A"}, {Name: "B", Capability: driver.Capability{Major: 8, Minor: 6}}}})
	devices, err := f.Driver().Devices()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := devices[0].Capability, devices[1].Capability; a != (driver.Capability{Major: 9}) || b != (driver.Capability{Major: 8, Minor: 6}) {
		t.Errorf("capabilities %v and %v", a, b)
	}
}

// The fake reports parameters whose sizes differ from the kernel's declaration.
func TestMisfits(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	err := c.Do(func() error {
		m, err := c.LoadModule([]byte(`.version 8.0
.visible .entry none()
.visible .entry scalars(
	.param .f32 scalars_param_0,
	.param .u64 scalars_param_1,
	.param .u8 scalars_param_2
)
.visible .entry structure(
	.param .align 8 .b8 structure_param_0[20],
	.param .align 16 .b8 structure_param_1[16]
)
`))
		if err != nil {
			return err
		}
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		for name, size := range map[string]int{"none": 0, "scalars": 17, "structure": 48} {
			k, err := m.Function(name)
			if err != nil {
				return err
			}
			for _, n := range []int{size, size + 1} {
				var a driver.Args
				a.Struct(make([]byte, n), 1)
				if err := k.Launch(s, driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}}, &a); err != nil {
					return err
				}
			}
		}
		return errors.Join(s.Destroy(), m.Unload())
	})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Misfits()
	slices.Sort(got)
	want := []string{"none: 1 bytes, declared are 0", "scalars: 18 bytes, declared are 17", "structure: 49 bytes, declared are 48"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The fake records work of streams in the order in which the device executes it. Work in a graph is
// recorded when the graph is launched.
func TestWork(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	var want []drivertest.Work
	err := c.Do(func() error {
		var s [2]*driver.Stream
		for i := range s {
			var err error
			if s[i], err = c.NewStream(); err != nil {
				return err
			}
		}
		e, err := c.NewEvent()
		if err != nil {
			return err
		}
		host, err := c.AllocHost(48)
		if err != nil {
			return err
		}
		p, err := c.Alloc(64)
		if err != nil {
			return err
		}
		g, err := s[1].Capture(func() error { return s[1].CopyToDevice(p+16, host) })
		if err != nil {
			return err
		}
		x, err := g.Instantiate()
		if err != nil {
			return err
		}
		if err := errors.Join(s[0].CopyToDevice(p, host[:32]), e.Record(s[0]), s[1].Wait(e), x.Launch(s[1]), s[1].Synchronize()); err != nil {
			return err
		}
		all := f.Work()
		if len(all) != 5 {
			t.Fatalf("%d pieces of work, want 5", len(all))
		}
		one, other, event := all[0].Stream, all[2].Stream, all[1].Record
		want = []drivertest.Work{
			{Stream: one, To: uint64(p), From: &host[0], Bytes: 32},
			{Stream: one, Record: event},
			{Stream: other, Wait: event},
			{Stream: other, To: uint64(p) + 16, From: &host[0], Bytes: 48},
			{Stream: other, Synchronized: true},
		}
		if !slices.Equal(all, want) || one == other || event == 0 {
			t.Errorf("got %+v, want %+v", all, want)
		}
		if n := f.HostBytes(); n != 48 {
			t.Errorf("%d bytes of the host are pinned", n)
		}
		return errors.Join(x.Destroy(), g.Destroy(), c.Free(p), c.FreeHost(host), e.Destroy(), s[0].Destroy(), s[1].Destroy())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Forbidden calls invalidate a capture if its own thread makes them, and not if another thread
// does.
func TestCaptureIsOfAThread(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c, other := f.Context(), f.Context()
	for _, by := range []*driver.Context{c, other} {
		err := c.Do(func() error {
			s, err := c.NewStream()
			if err != nil {
				return err
			}
			g, err := s.Capture(func() error {
				if by == c {
					_ = c.Synchronize()
					_, err := c.Alloc(16)
					if err == nil {
						t.Error("memory was given while a stream is captured")
					}
					return nil
				}
				return other.Do(func() error {
					p, err := other.Alloc(16)
					return errors.Join(err, other.Free(p))
				})
			})
			if spoilt := by == c; (err != nil) != spoilt {
				t.Errorf("by its own thread: %v: %v", spoilt, err)
			}
			if err == nil {
				err = g.Destroy()
			} else {
				err = nil
			}
			return errors.Join(err, s.Destroy())
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Many fakes, in sequence and at the same time, share few C functions.
func TestManyFakes(t *testing.T) {
	for i := range 100 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{{Name: fmt.Sprint("GPU ", i), Memory: 1}}})
			other := drivertest.New(t, drivertest.Options{})
			if got := f.Context().Device().Name; got != fmt.Sprint("GPU ", i) {
				t.Errorf("device %q", got)
			}
			if n := other.Calls("cuInit"); n != 0 {
				t.Errorf("another fake was called %d times", n)
			}
		})
	}
}
