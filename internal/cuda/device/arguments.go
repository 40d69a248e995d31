package device

import (
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// Arguments packs a structure as a kernel argument: fields of fixed sizes in the order of the
// kernel's structure, which C and Go align alike.
func Arguments[T any](v *T) *driver.Args {
	var a driver.Args
	return a.Struct(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)), int(unsafe.Alignof(*v)))
}

// Forms describes where a value is stored; see kernels/forms.cuh.
type Forms struct {
	F32, Bf16, F16 driver.DevicePtr
	Stride, Cols   int32
	By             float32 // a power of two: F16 holds the value times By
	_              int32
}

// Words reinterprets b as values of type T, as many as fit.
func Words[T any](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}
