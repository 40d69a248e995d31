package driver

// An Event is a place in a stream's work.
type Event struct {
	c      *Context
	handle uintptr
}

const eventDisableTiming = 2

// NewEvent makes an event to wait for, which costs less than a timed one.
func (c *Context) NewEvent() (*Event, error) { return c.newEvent(eventDisableTiming) }

// NewTimer makes an event that keeps the time for [Event.Since].
func (c *Context) NewTimer() (*Event, error) { return c.newEvent(0) }

func (c *Context) newEvent(flags uintptr) (*Event, error) {
	if err := c.do(fnEventCreate, at(&c.out.handle), flags); err != nil {
		return nil, err
	}
	return &Event{c, c.out.handle}, nil
}

// Destroy lets go of the event. A second call does nothing.
func (e *Event) Destroy() error { return destroy(e.c, fnEventDestroy, &e.handle) }

// Record puts the event behind what the stream was given so far.
func (e *Event) Record(s *Stream) error {
	if s.handle == 0 {
		return e.c.invalid(fnEventRecord, "the stream is destroyed")
	}
	return e.do(fnEventRecord, e.handle, s.handle)
}

// Synchronize waits until the stream has come to the event.
func (e *Event) Synchronize() error { return e.do(fnEventSynchronize, e.handle) }

// Query reports whether the stream has come to the event.
func (e *Event) Query() (bool, error) { return query(e.c, fnEventQuery, e.handle) }

// Since is the time from one timer to another in milliseconds, both passed by
// their streams. It resolves about half a microsecond.
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

// In is the event for the use of another context of the same device, so that one
// thread can wait while another one works. It is destroyed by its own.
func (e *Event) In(c *Context) *Event { return &Event{c, e.handle} }
