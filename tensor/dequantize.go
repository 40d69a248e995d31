package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dequantize writes the values of the blocks in src to dst. dst must have exactly as many elements
// as src holds. It allocates nothing. Integers and F64 are rounded to the nearest float32, and BOOL
// is 0 or 1.
//
// The block formats are those of ggml. Products and sums are each rounded to float32, in the order
// of ggml's reference, on every machine.
//
// The error wraps [ErrDType] if d is not a known format, and [ErrSize] if the sizes disagree; then
// nothing is written.
func Dequantize(d DType, dst []float32, src []byte) error {
	size, err := d.Size(len(dst))
	if err != nil {
		return err
	}
	if size != len(src) {
		return fmt.Errorf("tensor: %w: %d elements of %v take %d bytes, but src has %d", ErrSize, len(dst), d, size, len(src))
	}
	formats[d].decode(dst, src)
	return nil
}

// f16At returns the binary16 number in the first two bytes of b, the form of blocks' scales.
func f16At(b []byte) float32 { return F16ToF32(uint16(b[0]) | uint16(b[1])<<8) }

// Decoders of unquantized numbers.

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeF8_E4M3(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = f8E4M3Values[src[i]]
	}
}

func decodeF8_E5M2(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = f8E5M2ToF32(src[i])
	}
}

func decodeF8_E8M0(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = E8M0ToF32(src[i])
	}
}

func decodeF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int8(src[i]))
	}
}

func decodeI16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int16(binary.LittleEndian.Uint16(src[2*i:])))
	}
}

func decodeI32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

func decodeI64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeU8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(src[i])
	}
}

func decodeU16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func decodeU32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeU64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(binary.LittleEndian.Uint64(src[8*i:]))
	}
}

func decodeBool(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = 0
		if src[i] != 0 {
			dst[i] = 1
		}
	}
}
