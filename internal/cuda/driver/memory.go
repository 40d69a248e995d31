package driver

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"
)

// A DevicePtr is an address in the memory of a device. Adding bytes to it gives
// another one.
type DevicePtr uint64

// Alloc takes memory of the device, aligned to 256 bytes. What it holds is
// whatever was there before.
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

// Free gives back what Alloc took. It waits for the work of the device. Free of 0
// does nothing.
func (c *Context) Free(p DevicePtr) error {
	if p == 0 {
		return nil
	}
	return c.do(fnMemFree, uintptr(p))
}

// MemInfo is the device's memory in bytes, free for anyone and in all.
func (c *Context) MemInfo() (free, total int, err error) {
	if err := c.do(fnMemGetInfo, at(&c.out.size[0]), at(&c.out.size[1])); err != nil {
		return 0, 0, err
	}
	return int(c.out.size[0]), int(c.out.size[1]), nil
}

// pinned is a piece of the host's memory that the device can read by itself.
type pinned struct {
	start uintptr
	size  int
}

// AllocHost takes memory of the host that stays in its place, so that the device
// can copy from and to it while the host goes on. It is not Go's: after
// [Context.FreeHost] nothing may touch it.
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

// FreeHost gives back what [Context.AllocHost] returned; b begins where that did.
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

// Reach is where kernels find b, which is memory of [Context.AllocHost], and which they
// read over the link: the host and its devices have one space of addresses. It is 0 where
// b is other memory.
func (c *Context) Reach(b []byte) DevicePtr {
	if !c.isPinned(b) {
		return 0
	}
	return DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

func (c *Context) findPinned(start uintptr) (int, bool) {
	return slices.BinarySearchFunc(c.pinned, start, func(p pinned, start uintptr) int { return cmp.Compare(p.start, start) })
}

// isPinned reports whether all of b lies within one piece of pinned memory.
func (c *Context) isPinned(b []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	i, found := c.findPinned(start)
	if !found {
		i--
	}
	return i >= 0 && start-c.pinned[i].start+uintptr(len(b)) <= uintptr(c.pinned[i].size)
}
