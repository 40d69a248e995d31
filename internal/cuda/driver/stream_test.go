package driver_test

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
)

func TestStream(t *testing.T) {
	f := drivertest.New(t, drivertest.Options{})
	c := f.Context()
	within(t, c, func() error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		e, err := c.NewEvent()
		if err != nil {
			return err
		}
		for what, query := range map[string]func() (bool, error){"cuStreamQuery": s.Query, "cuEventQuery": e.Query} {
			if done, err := query(); !done || err != nil {
				t.Errorf("%s: %v, %v", what, done, err)
			}
			f.Fail(what, 1, driver.NotReady)
			if done, err := query(); done || err != nil {
				t.Errorf("%s of what is not over: %v, %v", what, done, err)
			}
			f.Fail(what, 1, driver.InvalidHandle)
			if _, err := query(); err == nil {
				t.Errorf("%s hid an error", what)
			}
		}
		if err := errors.Join(e.Record(s), s.Wait(e), e.Synchronize(), s.Synchronize(), s.Destroy(), s.Destroy()); err != nil {
			return err
		}
		// Its handle now means the default stream.
		for what, err := range map[string]error{
			"Synchronize": s.Synchronize(), "Wait": s.Wait(e), "Record": e.Record(s), "Memset8": s.Memset8(1, 1, 1),
		} {
			if err == nil {
				t.Errorf("%s worked on a stream that was destroyed", what)
			}
		}
		if err := errors.Join(e.Destroy(), e.Destroy()); err != nil {
			return err
		}
		if s, err = c.NewStream(); err != nil {
			return err
		}
		for what, err := range map[string]error{"Synchronize": e.Synchronize(), "Wait": s.Wait(e), "Record": e.Record(s)} {
			if err == nil {
				t.Errorf("%s worked on an event that was destroyed", what)
			}
		}
		return s.Destroy()
	})
}

func TestTimer(t *testing.T) {
	c := drivertest.New(t, drivertest.Options{}).Context()
	within(t, c, func() error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		defer destroy(t, s.Destroy)
		var events [3]*driver.Event
		for i, make := range []func() (*driver.Event, error){c.NewTimer, c.NewTimer, c.NewEvent} {
			if events[i], err = make(); err != nil {
				return err
			}
			defer destroy(t, events[i].Destroy)
		}
		start, end, plain := events[0], events[1], events[2]
		if _, err := end.Since(start); err == nil {
			t.Error("there is a time between events that were not recorded")
		}
		p, err := c.Alloc(4)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return c.Free(p) })
		// The fake's clock advances half a millisecond with each piece of work.
		if err := errors.Join(start.Record(s), s.Memset8(p, 0, 4), s.Memset8(p, 0, 4), end.Record(s), plain.Record(s)); err != nil {
			return err
		}
		if ms, err := end.Since(start); ms != 1.5 || err != nil {
			t.Errorf("%v ms, %v", ms, err)
		}
		if ms, err := start.Since(end); ms != -1.5 || err != nil {
			t.Errorf("backwards: %v ms, %v", ms, err)
		}
		if _, err := plain.Since(start); err == nil {
			t.Error("an event without a clock has a time")
		}
		return nil
	})
}
