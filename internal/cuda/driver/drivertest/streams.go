package drivertest

import "github.com/realizar/realizar/internal/cuda/driver"

// stream performs its work at once, or stores it in a graph.
type stream struct {
	capture *graph // nil when not capturing
	thread  int    // the capturing thread
	invalid bool   // it made a forbidden call during the capture
}

func (*stream) kind() string { return "stream" }

type event struct {
	tick  int
	timed bool
}

func (*event) kind() string { return "event" }

// enqueue gives a stream work. The work is told whether it runs as part of a graph.
func (f *Fake) enqueue(handle uintptr, work func(graph bool) driver.Code) driver.Code {
	s, ok := object[*stream](f, handle)
	if !ok {
		return driver.InvalidHandle
	}
	if s.capture != nil {
		s.capture.nodes = append(s.capture.nodes, work)
		return driver.Success
	}
	f.ticks++
	f.working = handle
	return work(false)
}

// notCapturing returns Success unless the calling thread captures a stream, whose capture it
// invalidates. Other threads do not matter, because captures belong to a thread.
func (f *Fake) notCapturing() driver.Code {
	code, caller := driver.Success, thread()
	for _, o := range f.objects {
		if s, ok := o.(*stream); ok && s.capture != nil && s.thread == caller {
			s.invalid = true
			code = driver.CaptureUnsupported
		}
	}
	return code
}

func (s *slot) addStreams() {
	s.add("cuStreamCreate", func(out *uintptr, _ uint32) uintptr {
		return s.callInContext("cuStreamCreate", func(f *Fake, _ int) driver.Code {
			*out = f.add(&stream{})
			return driver.Success
		})
	})
	s.add("cuStreamDestroy_v2", func(h uintptr) uintptr {
		return s.callInContext("cuStreamDestroy", func(f *Fake, _ int) driver.Code { return remove[*stream](f, h) })
	})
	finish := func(name string, h uintptr) uintptr {
		return s.callInContext(name, func(f *Fake, _ int) driver.Code {
			if _, ok := object[*stream](f, h); !ok && h != 0 {
				return driver.InvalidHandle
			}
			f.work = append(f.work, Work{Stream: h, Synchronized: true})
			return f.notCapturing()
		})
	}
	s.add("cuStreamSynchronize", func(h uintptr) uintptr { return finish("cuStreamSynchronize", h) })
	s.add("cuStreamQuery", func(h uintptr) uintptr { return finish("cuStreamQuery", h) })

	// withEvent runs functions about an event and, unless it is nil, a stream.
	withEvent := func(name string, e uintptr, on *uintptr, body func(f *Fake, e *event) driver.Code) uintptr {
		return s.callInContext(name, func(f *Fake, _ int) driver.Code {
			found, ok := object[*event](f, e)
			if !ok {
				return driver.InvalidHandle
			}
			if on != nil {
				if _, ok := object[*stream](f, *on); !ok {
					return driver.InvalidHandle
				}
			}
			return body(f, found)
		})
	}
	s.add("cuStreamWaitEvent", func(h, e uintptr, _ uint32) uintptr {
		return withEvent("cuStreamWaitEvent", e, &h, func(f *Fake, _ *event) driver.Code {
			f.work = append(f.work, Work{Stream: h, Wait: e})
			return driver.Success
		})
	})
	s.add("cuEventCreate", func(out *uintptr, flags uint32) uintptr {
		return s.callInContext("cuEventCreate", func(f *Fake, _ int) driver.Code {
			const disableTiming = 2
			*out = f.add(&event{timed: flags&disableTiming == 0})
			return driver.Success
		})
	})
	s.add("cuEventDestroy_v2", func(e uintptr) uintptr {
		return s.callInContext("cuEventDestroy", func(f *Fake, _ int) driver.Code { return remove[*event](f, e) })
	})
	s.add("cuEventRecord", func(e, h uintptr) uintptr {
		handle := e
		return withEvent("cuEventRecord", e, &h, func(f *Fake, e *event) driver.Code {
			f.ticks++
			e.tick = f.ticks
			f.work = append(f.work, Work{Stream: h, Record: handle})
			return driver.Success
		})
	})
	s.add("cuEventSynchronize", func(e uintptr) uintptr {
		return withEvent("cuEventSynchronize", e, nil, func(f *Fake, _ *event) driver.Code { return f.notCapturing() })
	})
	s.add("cuEventQuery", func(e uintptr) uintptr {
		return withEvent("cuEventQuery", e, nil, func(*Fake, *event) driver.Code { return driver.Success })
	})
	s.add("cuEventElapsedTime", func(out *float32, from, to uintptr) uintptr {
		return s.callInContext("cuEventElapsedTime", func(f *Fake, _ int) driver.Code {
			a, okA := object[*event](f, from)
			b, okB := object[*event](f, to)
			if !okA || !okB || !a.timed || !b.timed || a.tick == 0 || b.tick == 0 {
				return driver.InvalidHandle
			}
			*out = float32(b.tick-a.tick) / 2 // a tick is half a millisecond
			return driver.Success
		})
	})
}
