package tensor

import (
	"fmt"
	"math/bits"
	"strings"
)

// A DType is a number format: an unquantized float or integer, a block quantization of GGUF, or a
// format that weights have only in memory.
type DType uint8

// The formats of weights: floats, the block quantizations of GGUF, and F8_E4M3_32, which no file
// has.
const (
	F32 DType = iota
	F16
	BF16
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q2_K
	Q3_K
	Q4_K
	Q5_K
	Q6_K
	IQ4_NL
	IQ4_XS
	MXFP4
	IQ1_S
	IQ1_M
	IQ2_XXS
	IQ2_XS
	IQ2_S
	IQ3_XXS
	IQ3_S
	TQ1_0
	TQ2_0
	F8_E4M3
	F8_E5M2
	F64

	// F8_E4M3_32 is realizar's own format for FP8 checkpoints, which store numbers in one tensor
	// and their scales in another: blocks of 32 elements with a float32 scale and 32 E4M3 numbers,
	// whatever part of the weight shares a scale in the checkpoint. A value is the product in
	// float32.
	F8_E4M3_32
)

// Formats in files that weights cannot have. Integers in place of a weight are the codes of some
// quantization that the format does not tell.
const (
	I8 DType = iota + F8_E4M3_32 + 1
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	BOOL
	F8_E8M0 // scales: powers of two
)

// String returns the format's name as in GGUF and safetensors, for example "F32" or "Q4_K", or for
// F8_E4M3_32 a name in their style.
func (d DType) String() string {
	if !d.known() {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return formats[d].Name
}

// BlockLen returns the number of elements in a block: 1 for an unquantized format, 32 or 256 for a
// quantization, and 0 if d is not a known format.
func (d DType) BlockLen() int {
	if !d.known() {
		return 0
	}
	return formats[d].BlockLen
}

// BlockBytes returns the number of bytes in a block, or 0 if d is not a known format.
func (d DType) BlockBytes() int {
	if !d.known() {
		return 0
	}
	return formats[d].BlockBytes
}

// Quantized reports whether the format packs several elements into one block.
func (d DType) Quantized() bool { return d.BlockLen() > 1 }

// Weight reports whether weights may have the format: whether it is one of [F32] to [F8_E4M3_32].
func (d DType) Weight() bool { return d <= F8_E4M3_32 }

// Size returns the number of bytes that elems elements take. The error wraps [ErrDType] if d is not
// a known format, and [ErrSize] if elems is negative, is not a multiple of the block, or takes more
// bytes than an int can count.
func (d DType) Size(elems int) (int, error) {
	if !d.known() {
		return 0, fmt.Errorf("tensor: %w: %v", ErrDType, d)
	}
	f := &formats[d]
	if elems < 0 {
		return 0, fmt.Errorf("tensor: %w: %d elements of %v", ErrSize, elems, d)
	}
	if elems%f.BlockLen != 0 {
		return 0, fmt.Errorf("tensor: %w: %d elements are not a multiple of the %d in a block of %v",
			ErrSize, elems, f.BlockLen, d)
	}
	n, ok := mul(elems/f.BlockLen, f.BlockBytes)
	if !ok {
		return 0, fmt.Errorf("tensor: %w: %d elements of %v take more bytes than an int can count", ErrSize, elems, d)
	}
	return n, nil
}

func (d DType) known() bool { return int(d) < len(formats) }

// ParseDType returns the format with that name, as [DType.String] writes it; case does not matter.
// The error for an unknown name wraps [ErrDType]. ParseDType knows F8_E4M3_32 too, which a reader
// of files must refuse.
func ParseDType(name string) (DType, error) {
	for i := range formats {
		if strings.EqualFold(formats[i].Name, name) {
			return DType(i), nil
		}
	}
	return 0, fmt.Errorf("tensor: %w: %q", ErrDType, name)
}

// mul returns a*b for numbers that are not negative, and whether the product fits in an int.
func mul(a, b int) (int, bool) {
	hi, lo := bits.Mul(uint(a), uint(b))
	return int(lo), hi == 0 && int(lo) >= 0
}
