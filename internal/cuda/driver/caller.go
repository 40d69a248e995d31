package driver

import (
	"fmt"
	"unsafe"
)

// A caller makes calls of the driver, one at a time. What the driver reads and
// writes meanwhile lies in the caller, or is held by it: the memory of the Go heap
// stays where it is, a goroutine's stack does not. So a call allocates nothing.
type caller struct {
	address *[functions]uintptr
	args    [12]uintptr // of cuTensorMapEncodeTiled, which takes the most
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

// call makes a call. Its pointers are addresses of out or come from hold.
func (c *caller) call(f function, args ...uintptr) Code {
	n := copy(c.args[:], args)
	code := Code(uint32(invoke(c.address[f], c.args[:n])))
	c.held = nil
	return code
}

// hold is the address of what p points to, which stays there until the next call
// has returned: keeping p in the caller is what makes it lie on the heap.
func (c *caller) hold(p unsafe.Pointer) uintptr {
	c.held = p
	return uintptr(p)
}

// at is the address of a field of out.
func at[T any](field *T) uintptr { return uintptr(unsafe.Pointer(field)) }

// fault describes a code that f returned.
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

// text is out.text up to its NUL.
func (c *caller) text() string { return cString(c.out.text[:]) }

func cString(b []byte) string {
	for i, x := range b {
		if x == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
