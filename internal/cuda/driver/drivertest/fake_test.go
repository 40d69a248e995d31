package drivertest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// recorder is a test that keeps what it is told.
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

// Many fakes, one after the other and at a time, make do with few C functions.
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
