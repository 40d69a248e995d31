package driver

// A Stream is work in order. It does not wait for the stream that calls without
// one use.
type Stream struct {
	c      *Context
	handle uintptr // 0 once destroyed, which the driver would take for another stream
	waits  bool    // the next launch is after a Wait
}

const streamNonBlocking = 1

// NewStream makes a stream.
func (c *Context) NewStream() (*Stream, error) {
	if err := c.do(fnStreamCreate, at(&c.out.handle), streamNonBlocking); err != nil {
		return nil, err
	}
	return &Stream{c: c, handle: c.out.handle}, nil
}

// Destroy lets go of the stream; the device finishes what it was given. A second
// call does nothing.
func (s *Stream) Destroy() error { return destroy(s.c, fnStreamDestroy, &s.handle) }

// Synchronize waits for what the stream was given.
func (s *Stream) Synchronize() error { return s.do(fnStreamSynchronize, s.handle) }

// Query reports whether the stream has done all it was given.
func (s *Stream) Query() (bool, error) { return query(s.c, fnStreamQuery, s.handle) }

// Wait lets what the stream is given from now on wait for the event's last record.
func (s *Stream) Wait(e *Event) error {
	if e.handle == 0 {
		return s.c.invalid(fnStreamWaitEvent, "the event is destroyed")
	}
	s.waits = true
	return s.do(fnStreamWaitEvent, s.handle, e.handle, 0)
}

func (s *Stream) do(f function, args ...uintptr) error {
	if s.handle == 0 {
		return s.c.invalid(f, "the stream is destroyed")
	}
	return s.c.do(f, args...)
}

// destroy ends what *handle stands for, once. What a lost context held is gone.
func destroy(c *Context, f function, handle *uintptr) error {
	h := *handle
	if h == 0 {
		return nil
	}
	*handle = 0
	return c.do(f, h)
}

// query makes a call that is not an error where it says that something is not over.
func query(c *Context, f function, handle uintptr) (bool, error) {
	if c.lost != nil {
		return false, c.lost
	}
	if handle == 0 {
		return false, c.invalid(f, "it is destroyed")
	}
	switch code := c.call(f, handle); code {
	case Success:
		return true, nil
	case NotReady:
		return false, nil
	default:
		return false, c.failed(f, code, "")
	}
}
