package driver

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"
)

// A DevicePtr is an address in device memory. Adding a number of bytes gives another address.
type DevicePtr uint64

// Alloc allocates device memory, aligned to 256 bytes. The memory is not initialized.
func (c *Context) Alloc(bytes int) (DevicePtr, error) {
	if bytes <= 0 {
		return 0, c.invalid(fnMemAlloc, "%d bytes wanted; a size is above zero", bytes)
	}
	if c.lost != nil {
		return 0, c.lost
	}
	if code := c.call(fnMemAlloc, at(&c.out.size[0]), uintptr(bytes)); code != Success {
		return 0, c.failed(fnMemAlloc, code, fmt.Sprintf("%d bytes wanted", bytes))
	}
	return DevicePtr(c.out.size[0]), nil
}

// Free frees memory from Alloc. It waits for the device to finish its work. Free of 0 does nothing.
func (c *Context) Free(p DevicePtr) error {
	if p == 0 {
		return nil
	}
	return c.do(fnMemFree, uintptr(p))
}

// MemInfo returns the free and total device memory, in bytes.
func (c *Context) MemInfo() (free, total int, err error) {
	if err := c.do(fnMemGetInfo, at(&c.out.size[0]), at(&c.out.size[1])); err != nil {
		return 0, 0, err
	}
	return int(c.out.size[0]), int(c.out.size[1]), nil
}

// pinned is a block of host memory that the device can read directly.
type pinned struct {
	start uintptr
	size  int
}

// AllocHost allocates pinned host memory, so that the device can copy from and to it while the host
// continues. The memory is not managed by Go: after [Context.FreeHost] it must not be touched.
func (c *Context) AllocHost(bytes int) ([]byte, error) {
	if bytes <= 0 {
		return nil, c.invalid(fnMemHostAlloc, "%d bytes wanted; a size is above zero", bytes)
	}
	if c.lost != nil {
		return nil, c.lost
	}
	if code := c.call(fnMemHostAlloc, at(&c.out.host), uintptr(bytes), 0); code != Success {
		return nil, c.failed(fnMemHostAlloc, code, fmt.Sprintf("%d bytes of pinned host memory wanted", bytes))
	}
	host := c.out.host
	c.out.host = nil
	i, _ := c.findPinned(uintptr(host))
	c.pinned = slices.Insert(c.pinned, i, pinned{uintptr(host), bytes})
	return unsafe.Slice((*byte)(host), bytes), nil
}

// FreeHost frees memory from [Context.AllocHost]. b must begin at the same address.
func (c *Context) FreeHost(b []byte) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	i, found := c.findPinned(start)
	if !found {
		return c.invalid(fnMemFreeHost, "no memory of AllocHost begins at %#x", start)
	}
	if err := c.do(fnMemFreeHost, start); err != nil {
		return err
	}
	c.pinned = slices.Delete(c.pinned, i, i+1)
	return nil
}

// Reach returns the address at which kernels find b, memory from [Context.AllocHost], which they
// read over the link. The host and its devices share one address space. Reach returns 0 for other
// memory.
func (c *Context) Reach(b []byte) DevicePtr {
	if !c.isPinned(b) {
		return 0
	}
	return DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

func (c *Context) findPinned(start uintptr) (int, bool) {
	return slices.BinarySearchFunc(c.pinned, start, func(p pinned, start uintptr) int { return cmp.Compare(p.start, start) })
}

// isPinned reports whether all of b is in one block of pinned memory.
func (c *Context) isPinned(b []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	i, found := c.findPinned(start)
	if !found {
		i--
	}
	return i >= 0 && start-c.pinned[i].start+uintptr(len(b)) <= uintptr(c.pinned[i].size)
}
