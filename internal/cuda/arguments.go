package cuda

import (
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// arguments packs a structure as a kernel takes it: fields of fixed sizes in the order
// of the kernel's own, which C and Go align alike.
func arguments[T any](v *T) *driver.Args {
	var a driver.Args
	return a.Struct(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)), int(unsafe.Alignof(*v)))
}

// forms is where a value lies, see kernels/forms.cuh.
type forms struct {
	f32, q8, meta, bf16, f16 driver.DevicePtr
	stride, cols             int32
}

// words are the bytes b as values of another type, as many as fit.
func words[T any](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}
