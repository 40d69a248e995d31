package driver

// An Event marks a point in a stream's work.
type Event struct {
	c      *Context
	handle uintptr
}

const eventDisableTiming = 2

// NewEvent creates an event without a timer, which costs less than one with a timer.
func (c *Context) NewEvent() (*Event, error) { return c.newEvent(eventDisableTiming) }

// NewTimer creates an event that records the time, for [Event.Since].
func (c *Context) NewTimer() (*Event, error) { return c.newEvent(0) }

func (c *Context) newEvent(flags uintptr) (*Event, error) {
	if err := c.do(fnEventCreate, at(&c.out.handle), flags); err != nil {
		return nil, err
	}
	return &Event{c, c.out.handle}, nil
}

// Destroy destroys the event. A second call does nothing.
func (e *Event) Destroy() error { return destroy(e.c, fnEventDestroy, &e.handle) }

// Record places the event after the work queued so far.
func (e *Event) Record(s *Stream) error {
	if s.handle == 0 {
		return e.c.invalid(fnEventRecord, "the stream is destroyed")
	}
	return e.do(fnEventRecord, e.handle, s.handle)
}

// Synchronize waits until the stream has reached the event.
func (e *Event) Synchronize() error { return e.do(fnEventSynchronize, e.handle) }

// Query reports whether the stream has reached the event.
func (e *Event) Query() (bool, error) { return query(e.c, fnEventQuery, e.handle) }

// Since returns the time in milliseconds between two timers that their streams have reached. Its
// resolution is about half a microsecond.
func (e *Event) Since(start *Event) (float32, error) {
	if start.handle == 0 {
		return 0, e.c.invalid(fnEventElapsedTime, "the first event is destroyed")
	}
	if err := e.do(fnEventElapsedTime, at(&e.c.out.f), start.handle, e.handle); err != nil {
		return 0, err
	}
	return e.c.out.f, nil
}

func (e *Event) do(f function, args ...uintptr) error {
	if e.handle == 0 {
		return e.c.invalid(f, "the event is destroyed")
	}
	return e.c.do(f, args...)
}

// In returns the event for use in another context of the same device, so that one thread can wait
// while another works. The event must be destroyed in its own context.
func (e *Event) In(c *Context) *Event { return &Event{c, e.handle} }
