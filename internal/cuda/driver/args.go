package driver

import (
	"encoding/binary"
	"math"
)

// Args are a kernel's parameters, packed as the device reads them: in declaration order, each
// aligned to its size. They are packed once and can be launched many times, and may be changed
// between launches, because a launch copies them. The zero value has no parameters.
type Args struct {
	buf   []byte
	size  uintptr
	extra [5]uintptr
}

// Markers in the extra argument of cuLaunchKernel.
const (
	paramEnd           = 0
	paramBufferPointer = 1
	paramBufferSize    = 2
)

// Reset removes all parameters and keeps the memory for others.
func (a *Args) Reset() *Args {
	a.buf = a.buf[:0]
	return a
}

// Pointer adds an address.
func (a *Args) Pointer(p DevicePtr) *Args { return a.Uint64(uint64(p)) }

// Uint64 adds 64 bits.
func (a *Args) Uint64(v uint64) *Args {
	a.align(8)
	a.buf = binary.LittleEndian.AppendUint64(a.buf, v)
	return a
}

// Uint32 adds 32 bits.
func (a *Args) Uint32(v uint32) *Args {
	a.align(4)
	a.buf = binary.LittleEndian.AppendUint32(a.buf, v)
	return a
}

// Int32 adds 32 bits.
func (a *Args) Int32(v int32) *Args { return a.Uint32(uint32(v)) }

// Float32 adds 32 bits.
func (a *Args) Float32(v float32) *Args { return a.Uint32(math.Float32bits(v)) }

// TensorMap adds a tensor map, a parameter that the kernel declares as
// __grid_constant__.
func (a *Args) TensorMap(m *TensorMap) *Args {
	a.align(tensorMapAlign)
	for _, w := range m.opaque {
		a.buf = binary.LittleEndian.AppendUint64(a.buf, w)
	}
	return a
}

// Struct adds the bytes of a structure passed by value. align is the largest alignment of its
// fields.
func (a *Args) Struct(b []byte, align int) *Args {
	a.align(align)
	a.buf = append(a.buf, b...)
	return a
}

func (a *Args) align(n int) {
	for len(a.buf)%max(n, 1) != 0 {
		a.buf = append(a.buf, 0)
	}
}
