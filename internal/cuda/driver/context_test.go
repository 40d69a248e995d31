package driver_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

// Functions passed to Do never run concurrently, and those of one goroutine run in order. The race
// detector checks the former if it is on.
func TestDoInOrder(t *testing.T) {
	const goroutines, each = 8, 50
	c := drivertest.New(t, drivertest.Options{}).Context()
	var total int
	var last [goroutines]int
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := 1; i <= each; i++ {
				err := c.Do(func() error {
					total++
					if last[g] != i-1 {
						t.Errorf("goroutine %d: task %d came after %d", g, i, last[g])
					}
					last[g] = i
					return c.Synchronize() // fails on any thread but the context's
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total != goroutines*each {
		t.Errorf("%d tasks ran, want %d", total, goroutines*each)
	}
}

func TestDoError(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	want := errors.New("mine")
	if err := c.Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestDoPanic(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	err := c.Do(func() error {
		c.Doing("what panics")
		var none *driver.Stream
		return none.Synchronize()
	})
	if err == nil || !strings.Contains(err.Error(), "nil pointer") || !strings.Contains(err.Error(), "TestDoPanic") {
		t.Errorf("the error does not say what and where: %v", err)
	}
	if err := c.Do(c.Synchronize); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestDoGoexit(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	if err := c.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("no error")
	}
	if err := c.Do(c.Synchronize); err != nil {
		t.Errorf("after its goroutine ended: %v", err)
	}
}

func TestOutsideDo(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	var e *driver.Error
	if err := c.Synchronize(); !errors.As(err, &e) || e.Code != driver.InvalidContext {
		t.Errorf("got %v", err)
	}
}

func TestClose(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	started, release, done := make(chan bool), make(chan bool), make(chan error)
	go func() {
		done <- c.Do(func() error {
			close(started)
			<-release
			return c.Synchronize()
		})
	}()
	<-started
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the task under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if err := c.Do(func() error { t.Error("a task ran"); return nil }); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Do after Close: %v", err)
	}
	if n := f.Calls("cuDevicePrimaryCtxRelease"); n != 1 {
		t.Errorf("released %d times", n)
	}
}

func TestNewContextFails(t *testing.T) {
	for _, call := range []string{"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"} {
		f := drivertest.New(t, drivertest.Options{})
		devices, err := f.Driver().Devices()
		if err != nil {
			t.Fatal(err)
		}
		f.Fail(call, 1, driver.OutOfMemory)
		_, err = f.Driver().NewContext(devices[0])
		if !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "opening device 0, Fake GPU: "+call) {
			t.Errorf("%s: got %v", call, err)
		}
	}
}
