package device

import (
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// Arguments packs a structure as a kernel takes it: fields of fixed sizes in the order
// of the kernel's own, which C and Go align alike.
func Arguments[T any](v *T) *driver.Args {
	var a driver.Args
	return a.Struct(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)), int(unsafe.Alignof(*v)))
}

// Forms is where a value lies, see kernels/forms.cuh.
type Forms struct {
	F32, Bf16, F16 driver.DevicePtr
	Stride, Cols   int32
	By             float32 // a power of two: F16 is so many times the value
	_              int32
}

// Words are the bytes b as values of another type, as many as fit.
func Words[T any](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}
