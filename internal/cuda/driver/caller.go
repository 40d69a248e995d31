package driver

import (
	"fmt"
	"unsafe"
)

// A caller makes driver calls, one at a time. The memory that the driver reads and writes during a
// call is in the caller or referenced by it: the Go heap does not move, unlike a goroutine's stack.
// So a call allocates nothing.
type caller struct {
	address *[functions]uintptr
	args    [12]uintptr // cuTensorMapEncodeTiled takes the most
	held    unsafe.Pointer

	out struct {
		i      int32
		f      float32
		size   [2]uint64
		handle uintptr
		host   unsafe.Pointer
		text   [256]byte
	}
}

// call makes a call. Pointer arguments must be addresses in out or results of hold.
func (c *caller) call(f function, args ...uintptr) Code {
	n := copy(c.args[:], args)
	code := Code(uint32(invoke(c.address[f], c.args[:n])))
	c.held = nil
	return code
}

// hold returns the address of the memory that p points to, and keeps it valid until the next call
// has returned. Storing p in the caller moves the memory to the heap.
func (c *caller) hold(p unsafe.Pointer) uintptr {
	c.held = p
	return uintptr(p)
}

// at returns the address of a field of out.
func at[T any](field *T) uintptr { return uintptr(unsafe.Pointer(field)) }

// fault returns the error for a code that f returned.
func (c *caller) fault(f function, code Code) *Error {
	e := &Error{Call: f.String(), Code: code, Name: fmt.Sprintf("CUDA error %d", code), Text: "an error that the driver has no words for"}
	if s, ok := c.words(fnGetErrorName, code); ok {
		e.Name = s
	}
	if s, ok := c.words(fnGetErrorString, code); ok {
		e.Text = s
	}
	return e
}

func (c *caller) words(f function, code Code) (string, bool) {
	c.out.host = nil
	if c.call(f, uintptr(code), at(&c.out.host)) != Success || c.out.host == nil {
		return "", false
	}
	n := 0
	for *(*byte)(unsafe.Add(c.out.host, n)) != 0 {
		n++
	}
	s := string(unsafe.Slice((*byte)(c.out.host), n))
	c.out.host = nil
	return s, true
}

// text returns out.text up to its NUL.
func (c *caller) text() string { return cString(c.out.text[:]) }

func cString(b []byte) string {
	for i, x := range b {
		if x == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
