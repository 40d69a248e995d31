package driver

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
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

// A hostMemory is the pinned host memory of a driver's contexts. The host and its devices share one
// address space, so all contexts reach the memory of each. The contexts' threads share it.
type hostMemory struct {
	mu     sync.RWMutex
	blocks []pinned // by address
}

// pinned is a block of host memory that devices can read directly.
type pinned struct {
	start uintptr
	size  int
	owner *Context // allocated it
}

func (h *hostMemory) find(start uintptr) (int, bool) {
	return slices.BinarySearchFunc(h.blocks, start, func(p pinned, start uintptr) int { return cmp.Compare(p.start, start) })
}

func (h *hostMemory) add(p pinned) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := h.find(p.start)
	h.blocks = slices.Insert(h.blocks, i, p)
}

// owns reports whether a block of c begins at start.
func (h *hostMemory) owns(c *Context, start uintptr) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	i, found := h.find(start)
	return found && h.blocks[i].owner == c
}

func (h *hostMemory) remove(start uintptr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i, found := h.find(start); found {
		h.blocks = slices.Delete(h.blocks, i, i+1)
	}
}

// leave removes the blocks of c.
func (h *hostMemory) leave(c *Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocks = slices.DeleteFunc(h.blocks, func(p pinned) bool { return p.owner == c })
}

// has reports whether all of b is in one block.
func (h *hostMemory) has(b []byte) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	i, found := h.find(start)
	if !found {
		i--
	}
	return i >= 0 && start-h.blocks[i].start+uintptr(len(b)) <= uintptr(h.blocks[i].size)
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
	c.host.add(pinned{uintptr(host), bytes, c})
	return unsafe.Slice((*byte)(host), bytes), nil
}

// FreeHost frees memory from the same context's [Context.AllocHost]. b must begin at the same
// address.
func (c *Context) FreeHost(b []byte) error {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if !c.host.owns(c, start) {
		return c.invalid(fnMemFreeHost, "no memory of AllocHost begins at %#x", start)
	}
	if err := c.do(fnMemFreeHost, start); err != nil {
		return err
	}
	c.host.remove(start)
	return nil
}

// Reach returns the address at which kernels find b, memory from [Context.AllocHost] of any context,
// which they read over the link. Reach returns 0 for other memory.
func (c *Context) Reach(b []byte) DevicePtr {
	if !c.host.has(b) {
		return 0
	}
	return DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
