package drivertest

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// deviceMemory is the memory of all devices. Its addresses are otherwise unmapped, so the host
// faults if it follows one, unless they are in an arena.
type deviceMemory struct {
	arena      []byte
	blocks     []block // by address
	base, next uint64
	used       []int // bytes, by device
	pinned     int   // blocks of pinned memory in the arena
}

type block struct {
	start  uint64
	data   []byte
	device int
}

func newMemory(arena []byte, devices int) deviceMemory {
	base := uint64(0x7000_0000_0000)
	if arena != nil {
		base = uint64(uintptr(unsafe.Pointer(&arena[0])))
	}
	return deviceMemory{arena: arena, base: base, next: base, used: make([]int, devices)}
}

// place returns n bytes and their address. Behind them are bytes that nobody has, of an unmapped page
// if there is no arena.
func (m *deviceMemory) place(n int) (start uint64, data []byte) {
	if m.arena != nil && len(m.blocks) == 0 && m.pinned == 0 {
		m.next = m.base
	}
	start = m.next
	m.next += uint64(n+255)&^255 + 256
	if m.arena == nil {
		return start, make([]byte, n)
	}
	data = m.arena[start-m.base:][:n:n]
	for i := range data {
		data[i] = 0xff
	}
	return start, data
}

func (m *deviceMemory) take(device, n int) uint64 {
	start, data := m.place(n)
	m.blocks = append(m.blocks, block{start, data, device})
	m.used[device] += n
	return start
}

func (m *deviceMemory) free(start uint64) bool {
	i := slices.IndexFunc(m.blocks, func(b block) bool { return b.start == start })
	if i < 0 {
		return false
	}
	m.used[m.blocks[i].device] -= len(m.blocks[i].data)
	m.blocks = slices.Delete(m.blocks, i, i+1)
	return true
}

// at returns n bytes of a block, or nil if they are not all in one.
func (m *deviceMemory) at(p uint64, n int) []byte {
	for _, b := range m.blocks {
		if p >= b.start && p-b.start+uint64(n) <= uint64(len(b.data)) {
			return b.data[p-b.start:][:n]
		}
	}
	return nil
}

// owner returns the device of the block at p.
func (m *deviceMemory) owner(p uint64) (device int, ok bool) {
	for _, b := range m.blocks {
		if p >= b.start && p-b.start < uint64(len(b.data)) {
			return b.device, true
		}
	}
	return 0, false
}

// hostMemory returns n bytes of pinned memory.
func (f *Fake) hostMemory(n int) []byte {
	if f.memory.arena == nil {
		return make([]byte, n)
	}
	f.memory.pinned++
	_, data := f.memory.place(n)
	return data
}

func (f *Fake) copyBytes(to, from func() []byte) func() driver.Code {
	return func() driver.Code {
		a, b := to(), from()
		if a == nil || b == nil {
			return driver.InvalidValue
		}
		copy(a, b)
		return driver.Success
	}
}

func (f *Fake) onDevice(p uint64, n int) func() []byte {
	return func() []byte { return f.memory.at(p, n) }
}

// reached returns n bytes of a block that a device reaches. The real driver copies to and from devices
// that this one does not reach, through host memory.
func (f *Fake) reached(device int, p uint64, n int) func() []byte {
	return func() []byte {
		if at, ok := f.memory.owner(p); !ok || at != device && !f.reach[[2]int{device, at}] {
			return nil
		}
		return f.memory.at(p, n)
	}
}

func onHost(p *byte, n int) func() []byte {
	return func() []byte { return unsafe.Slice(p, n) }
}

func (f *Fake) fill(p uint64, n int, word []byte) func() driver.Code {
	return func() driver.Code {
		to := f.memory.at(p, n*len(word))
		if to == nil {
			return driver.InvalidValue
		}
		for n := copy(to, word); n < len(to); n *= 2 {
			copy(to[n:], to[:n])
		}
		return driver.Success
	}
}

func bytes32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

func (s *slot) addMemory() {
	s.add("cuMemAlloc_v2", func(out *uint64, n int) uintptr {
		return s.callInContext("cuMemAlloc", func(f *Fake, device int) driver.Code {
			if code := f.notCapturing(); code != driver.Success {
				return code
			}
			if n > f.options.Devices[device].Memory-f.memory.used[device] {
				return driver.OutOfMemory
			}
			*out = f.memory.take(device, n)
			return driver.Success
		})
	})
	s.add("cuMemFree_v2", func(p uint64) uintptr {
		return s.callInContext("cuMemFree", func(f *Fake, _ int) driver.Code {
			if code := f.notCapturing(); code != driver.Success {
				return code
			}
			if !f.memory.free(p) {
				return driver.InvalidValue
			}
			return driver.Success
		})
	})
	s.add("cuMemGetInfo_v2", func(free, total *uint64) uintptr {
		return s.callInContext("cuMemGetInfo", func(f *Fake, device int) driver.Code {
			*total = uint64(f.options.Devices[device].Memory)
			*free = *total - uint64(f.memory.used[device])
			return driver.Success
		})
	})
	s.add("cuMemHostAlloc", func(out *unsafe.Pointer, n int, _ uint32) uintptr {
		return s.callInContext("cuMemHostAlloc", func(f *Fake, _ int) driver.Code {
			if code := f.notCapturing(); code != driver.Success {
				return code
			}
			b := f.hostMemory(n)
			*out = unsafe.Pointer(&b[0])
			f.host[uintptr(*out)] = b
			return driver.Success
		})
	})
	s.add("cuMemFreeHost", func(p uintptr) uintptr {
		return s.callInContext("cuMemFreeHost", func(f *Fake, _ int) driver.Code {
			if f.host[p] == nil {
				return driver.InvalidValue
			}
			if delete(f.host, p); f.memory.arena != nil {
				f.memory.pinned--
			}
			return driver.Success
		})
	})

	// now performs work that cannot be captured, and later the work of a stream.
	now := func(name string, work func(f *Fake, device int) func() driver.Code) uintptr {
		return s.callInContext(name, func(f *Fake, device int) driver.Code {
			if code := f.notCapturing(); code != driver.Success {
				return code
			}
			return work(f, device)()
		})
	}
	later := func(name string, stream uintptr, work func(f *Fake, device int) func() driver.Code) uintptr {
		return s.callInContext(name, func(f *Fake, device int) driver.Code {
			run := work(f, device)
			return f.enqueue(stream, func(bool) driver.Code { return run() })
		})
	}
	s.add("cuMemcpyHtoD_v2", func(dst uint64, src *byte, n int) uintptr {
		return now("cuMemcpyHtoD", func(f *Fake, _ int) func() driver.Code { return f.copyBytes(f.onDevice(dst, n), onHost(src, n)) })
	})
	s.add("cuMemcpyDtoH_v2", func(dst *byte, src uint64, n int) uintptr {
		return now("cuMemcpyDtoH", func(f *Fake, _ int) func() driver.Code { return f.copyBytes(onHost(dst, n), f.onDevice(src, n)) })
	})
	s.add("cuMemcpyDtoD_v2", func(dst, src uint64, n int) uintptr {
		return now("cuMemcpyDtoD", func(f *Fake, device int) func() driver.Code {
			return f.copyBytes(f.reached(device, dst, n), f.reached(device, src, n))
		})
	})
	s.add("cuMemsetD8_v2", func(dst uint64, v uint8, n int) uintptr {
		return now("cuMemsetD8", func(f *Fake, _ int) func() driver.Code { return f.fill(dst, n, []byte{v}) })
	})
	s.add("cuMemsetD32_v2", func(dst uint64, v uint32, n int) uintptr {
		return now("cuMemsetD32", func(f *Fake, _ int) func() driver.Code { return f.fill(dst, n, bytes32(v)) })
	})
	s.add("cuMemcpyHtoDAsync_v2", func(dst uint64, src *byte, n int, stream uintptr) uintptr {
		return later("cuMemcpyHtoDAsync", stream, func(f *Fake, _ int) func() driver.Code {
			run := f.copyBytes(f.onDevice(dst, n), onHost(src, n))
			return func() driver.Code {
				f.work = append(f.work, Work{Stream: f.working, To: dst, From: src, Bytes: n})
				return run()
			}
		})
	})
	s.add("cuMemcpyDtoHAsync_v2", func(dst *byte, src uint64, n int, stream uintptr) uintptr {
		return later("cuMemcpyDtoHAsync", stream, func(f *Fake, _ int) func() driver.Code { return f.copyBytes(onHost(dst, n), f.onDevice(src, n)) })
	})
	s.add("cuMemcpyDtoDAsync_v2", func(dst, src uint64, n int, stream uintptr) uintptr {
		return later("cuMemcpyDtoDAsync", stream, func(f *Fake, device int) func() driver.Code {
			return f.copyBytes(f.reached(device, dst, n), f.reached(device, src, n))
		})
	})
	s.add("cuMemsetD8Async", func(dst uint64, v uint8, n int, stream uintptr) uintptr {
		return later("cuMemsetD8Async", stream, func(f *Fake, _ int) func() driver.Code { return f.fill(dst, n, []byte{v}) })
	})
	s.add("cuMemsetD32Async", func(dst uint64, v uint32, n int, stream uintptr) uintptr {
		return later("cuMemsetD32Async", stream, func(f *Fake, _ int) func() driver.Code { return f.fill(dst, n, bytes32(v)) })
	})
}
