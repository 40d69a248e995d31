package driver

// A Stream is a sequence of work for the device. It does not wait for the default stream.
type Stream struct {
	c      *Context
	handle uintptr // 0 once destroyed: the driver would take the handle for another stream
	waits  bool    // the next launch follows a Wait
}

const streamNonBlocking = 1

// NewStream creates a stream.
func (c *Context) NewStream() (*Stream, error) {
	if err := c.do(fnStreamCreate, at(&c.out.handle), streamNonBlocking); err != nil {
		return nil, err
	}
	return &Stream{c: c, handle: c.out.handle}, nil
}

// Destroy destroys the stream. The device still finishes the queued work. A second call does
// nothing.
func (s *Stream) Destroy() error { return destroy(s.c, fnStreamDestroy, &s.handle) }

// Synchronize waits for the queued work.
func (s *Stream) Synchronize() error { return s.do(fnStreamSynchronize, s.handle) }

// Query reports whether all queued work is complete.
func (s *Stream) Query() (bool, error) { return query(s.c, fnStreamQuery, s.handle) }

// Wait makes later work of the stream wait for the event's last record.
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

// destroy destroys the object of *handle, once. A lost context has already lost its objects.
func destroy(c *Context, f function, handle *uintptr) error {
	h := *handle
	if h == 0 {
		return nil
	}
	*handle = 0
	return c.do(f, h)
}

// query makes a call for which an incomplete result is not an error.
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
