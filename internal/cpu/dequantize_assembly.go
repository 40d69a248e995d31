//go:build amd64 || arm64

package cpu

import (
	"unsafe"

	"github.com/realizar/realizar/tensor"
)

// rowF32 copies: both architectures have the byte order of the file.
func rowF32(dst []float32, src []byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), src)
}

// wholeEights converts unquantized values in groups of eight. Package tensor converts the rest.
func wholeEights(d tensor.DType, convert func(dst *float32, src *byte, n int)) dequantizer {
	rest := generic.dequantizer(d)
	return func(dst []float32, src []byte) {
		if n := len(dst) / 8; n > 0 {
			convert(&dst[0], &src[0], n)
			dst, src = dst[8*n:], src[8*n*d.BlockBytes():]
		}
		rest(dst, src)
	}
}
