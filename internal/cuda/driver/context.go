package driver

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// A Context is a device's primary context, owned by one goroutine that is locked to its thread,
// because CUDA binds contexts to threads. All resources of the context, including memory, streams,
// modules and graphs, may be used only by functions that Do runs. Do and Close themselves may be
// called from any goroutine.
//
// Close does not free these resources; their creators must destroy them first.
type Context struct {
	device Device

	host *hostMemory

	mu     sync.RWMutex // read-locked while a task is handed over
	closed bool
	tasks  chan task
	ended  chan error // the owner's result
	close  func() error

	// The owner's fields.
	caller
	handle uintptr
	doing  string
	lost   *Error // the fault that ended the context
	launch launchSpace
}

type task struct {
	run  func() error
	done chan error
}

// replies are channels of capacity one.
var replies = sync.Pool{New: func() any { return make(chan error, 1) }}

// NewContext opens the primary context of a device. Several contexts of a device share it; each has
// its own thread.
func (d *Driver) NewContext(device Device) (*Context, error) {
	c := &Context{device: device, tasks: make(chan task), ended: make(chan error, 1)}
	c.address, c.host = &d.address, &d.host
	c.close = sync.OnceValue(c.end)
	opened := make(chan error)
	go c.own(opened)
	if err := <-opened; err != nil {
		return nil, err
	}
	return c, nil
}

// Device returns the context's device.
func (c *Context) Device() Device { return c.device }

// Do runs f on the context's thread, after all functions handed over before, and returns its error.
// A panic in f becomes an error. f must not call Do or Close of the same context, and must not
// share the resources that it uses with other goroutines.
func (c *Context) Do(f func() error) error {
	done := replies.Get().(chan error)
	if err := c.send(task{f, done}); err != nil {
		return err
	}
	err := <-done
	replies.Put(done)
	return err
}

func (c *Context) send(t task) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return ErrClosed
	}
	c.tasks <- t
	return nil
}

// Close waits for the functions that Do runs, and closes the context. A second call returns the
// same result.
func (c *Context) Close() error { return c.close() }

func (c *Context) end() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	close(c.tasks)
	return <-c.ended
}

func (c *Context) own(opened chan<- error) {
	runtime.LockOSThread()
	err := c.enter()
	opened <- err
	if err == nil {
		c.serve()
		c.host.leave(c)
	}
	// Not deferred: if Do's function ends the goroutine, the thread ends with it, and the context
	// is still current on that thread.
	runtime.UnlockOSThread()
}

func (c *Context) enter() error {
	c.doing = fmt.Sprintf("opening device %d, %s", c.device.Index, c.device.Name)
	defer func() { c.doing = "" }()
	if err := c.do(fnDevicePrimaryCtxRetain, at(&c.out.handle), c.device.handle); err != nil {
		return err
	}
	c.handle = c.out.handle
	if err := c.do(fnCtxSetCurrent, c.handle); err != nil {
		c.call(fnDevicePrimaryCtxRelease, c.device.handle)
		return err
	}
	return nil
}

func (c *Context) serve() {
	for t := range c.tasks {
		c.run(t)
	}
	c.call(fnCtxSetCurrent, 0)
	var err error
	if code := c.call(fnDevicePrimaryCtxRelease, c.device.handle); code != Success && c.lost == nil {
		err = c.fault(fnDevicePrimaryCtxRelease, code)
	}
	c.ended <- err
}

func (c *Context) run(t task) {
	returned := false
	defer func() {
		if returned {
			return
		}
		c.doing = ""
		if p := recover(); p != nil {
			t.done <- fmt.Errorf("cuda: a panic within Do: %v\n%s", p, debug.Stack())
			return
		}
		// runtime.Goexit ends this goroutine and its thread, so another one takes over.
		go c.takeOver()
		t.done <- errors.New("cuda: a function within Do ended its goroutine")
	}()
	err := t.run()
	returned = true
	t.done <- err
}

func (c *Context) takeOver() {
	runtime.LockOSThread()
	c.call(fnCtxSetCurrent, c.handle) // if this fails, every later call reports it
	c.serve()
	runtime.UnlockOSThread()
}

// Doing sets the activity that the context's errors name, and returns the previous one:
//
//	defer c.Doing(c.Doing("loading layer 3"))
func (c *Context) Doing(what string) (before string) {
	before, c.doing = c.doing, what
	return before
}

// Synchronize waits for all work of the device.
func (c *Context) Synchronize() error { return c.do(fnCtxSynchronize) }

// do makes a call, unless the device has been lost.
func (c *Context) do(f function, args ...uintptr) error {
	if c.lost != nil {
		return c.lost
	}
	if code := c.call(f, args...); code != Success {
		return c.failed(f, code, "")
	}
	return nil
}

// failed converts a code to an error, with the context's details.
func (c *Context) failed(f function, code Code, detail string) error {
	e := c.fault(f, code)
	e.Doing, e.Detail = c.doing, detail
	if code == OutOfMemory && c.call(fnMemGetInfo, at(&c.out.size[0]), at(&c.out.size[1])) == Success {
		if e.Detail != "" {
			e.Detail += ", "
		}
		e.Detail += fmt.Sprintf("%d of %d bytes free", c.out.size[0], c.out.size[1])
	}
	if code.Lost() {
		c.lost = e
	}
	return e
}

// invalid returns an error for a call that was not made, because the driver would reject it or
// misbehave.
func (c *Context) invalid(f function, format string, args ...any) error {
	return &Error{Call: f.String(), Code: InvalidValue, Name: "CUDA_ERROR_INVALID_VALUE", Text: "invalid argument", Doing: c.doing, Detail: fmt.Sprintf(format, args...)}
}
