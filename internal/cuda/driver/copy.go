package driver

import "unsafe"

// The copies and fills of a Context are complete when they return, for every stream. They wait if
// CUDA's own functions may return earlier.

// CopyToDevice copies all of src.
func (c *Context) CopyToDevice(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := c.do(fnMemcpyHtoD, uintptr(dst), c.hold(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src))); err != nil {
		return err
	}
	return c.settle()
}

// CopyToHost fills dst. It does not wait for earlier work of a stream.
func (c *Context) CopyToHost(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return c.do(fnMemcpyDtoH, c.hold(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)))
}

// CopyOnDevice copies within device memory, or between it and the memory of a device to which
// [Context.Connect] connects this one. The ranges must not overlap.
func (c *Context) CopyOnDevice(dst, src DevicePtr, bytes int) error {
	if bytes <= 0 {
		return c.sizeError(fnMemcpyDtoD, bytes)
	}
	if err := c.do(fnMemcpyDtoD, uintptr(dst), uintptr(src), uintptr(bytes)); err != nil {
		return err
	}
	return c.settle()
}

// Memset8 writes n bytes.
func (c *Context) Memset8(dst DevicePtr, value uint8, n int) error {
	if n <= 0 {
		return c.sizeError(fnMemsetD8, n)
	}
	if err := c.do(fnMemsetD8, uintptr(dst), uintptr(value), uintptr(n)); err != nil {
		return err
	}
	return c.settle()
}

// Memset32 writes n words of 32 bits. dst must be a multiple of 4.
func (c *Context) Memset32(dst DevicePtr, value uint32, n int) error {
	if n <= 0 {
		return c.sizeError(fnMemsetD32, n)
	}
	if err := c.do(fnMemsetD32, uintptr(dst), uintptr(value), uintptr(n)); err != nil {
		return err
	}
	return c.settle()
}

// settle waits for the default stream, for which a [Stream] does not wait.
func (c *Context) settle() error { return c.do(fnStreamSynchronize, 0) }

// sizeError returns nil for a size of zero, which needs no work.
func (c *Context) sizeError(f function, n int) error {
	if n == 0 {
		return nil
	}
	return c.invalid(f, "a size of %d", n)
}

// The copies and fills of a Stream run in its order, and return before they are complete. Host
// memory must come from [Context.AllocHost], of any context, and must not change until then, because
// the device, or a graph, reads it later.

// CopyToDevice copies all of src.
func (s *Stream) CopyToDevice(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if !s.c.host.has(src) {
		return s.c.invalid(fnMemcpyHtoDAsync, "%d bytes are not in memory of AllocHost", len(src))
	}
	return s.do(fnMemcpyHtoDAsync, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), s.handle)
}

// CopyToHost fills dst.
func (s *Stream) CopyToHost(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	if !s.c.host.has(dst) {
		return s.c.invalid(fnMemcpyDtoHAsync, "%d bytes are not in memory of AllocHost", len(dst))
	}
	return s.do(fnMemcpyDtoHAsync, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)), s.handle)
}

// CopyOnDevice is as [Context.CopyOnDevice].
func (s *Stream) CopyOnDevice(dst, src DevicePtr, bytes int) error {
	if bytes <= 0 {
		return s.c.sizeError(fnMemcpyDtoDAsync, bytes)
	}
	return s.do(fnMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), s.handle)
}

// Memset8 writes n bytes.
func (s *Stream) Memset8(dst DevicePtr, value uint8, n int) error {
	if n <= 0 {
		return s.c.sizeError(fnMemsetD8Async, n)
	}
	return s.do(fnMemsetD8Async, uintptr(dst), uintptr(value), uintptr(n), s.handle)
}

// Memset32 writes n words of 32 bits. dst must be a multiple of 4.
func (s *Stream) Memset32(dst DevicePtr, value uint32, n int) error {
	if n <= 0 {
		return s.c.sizeError(fnMemsetD32Async, n)
	}
	return s.do(fnMemsetD32Async, uintptr(dst), uintptr(value), uintptr(n), s.handle)
}
