package tensor

import (
	"fmt"
	"math/bits"
	"strings"
)

// A DType is a number format: a plain float or integer, a block quantization of
// GGUF, or one that weights have in memory alone.
type DType uint8

// The formats of weights: floats, the block quantizations of GGUF, and
// F8_E4M3_32, which no file has.
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

	// F8_E4M3_32 is realizar's own: what FP8 checkpoints store as numbers in one
	// tensor and their scales in another becomes blocks of 32 elements, a float32
	// scale and 32 numbers of E4M3, whatever part of the weight shares a scale
	// there. A value is the product in float32.
	F8_E4M3_32
)

// The formats that files hold beside weights. Integers in the place of a weight are
// codes of a scheme that a format does not tell.
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
)

// dtypes holds what a format is called and how its blocks are laid out; a
// quantization adds one row here, one case in Dequantize, and in finite.go where
// its scales are.
var dtypes = [...]struct {
	name  string
	elems int // per block
	bytes int // per block
}{
	F32:        {"F32", 1, 4},
	F16:        {"F16", 1, 2},
	BF16:       {"BF16", 1, 2},
	Q4_0:       {"Q4_0", 32, 18},
	Q4_1:       {"Q4_1", 32, 20},
	Q5_0:       {"Q5_0", 32, 22},
	Q5_1:       {"Q5_1", 32, 24},
	Q8_0:       {"Q8_0", 32, 34},
	Q2_K:       {"Q2_K", 256, 84},
	Q3_K:       {"Q3_K", 256, 110},
	Q4_K:       {"Q4_K", 256, 144},
	Q5_K:       {"Q5_K", 256, 176},
	Q6_K:       {"Q6_K", 256, 210},
	IQ4_NL:     {"IQ4_NL", 32, 18},
	IQ4_XS:     {"IQ4_XS", 256, 136},
	MXFP4:      {"MXFP4", 32, 17},
	IQ1_S:      {"IQ1_S", 256, 50},
	IQ1_M:      {"IQ1_M", 256, 56},
	IQ2_XXS:    {"IQ2_XXS", 256, 66},
	IQ2_XS:     {"IQ2_XS", 256, 74},
	IQ2_S:      {"IQ2_S", 256, 82},
	IQ3_XXS:    {"IQ3_XXS", 256, 98},
	IQ3_S:      {"IQ3_S", 256, 110},
	TQ1_0:      {"TQ1_0", 256, 54},
	TQ2_0:      {"TQ2_0", 256, 66},
	F8_E4M3:    {"F8_E4M3", 1, 1},
	F8_E5M2:    {"F8_E5M2", 1, 1},
	F64:        {"F64", 1, 8},
	F8_E4M3_32: {"F8_E4M3_32", 32, 36},
	I8:         {"I8", 1, 1},
	I16:        {"I16", 1, 2},
	I32:        {"I32", 1, 4},
	I64:        {"I64", 1, 8},
	U8:         {"U8", 1, 1},
	U16:        {"U16", 1, 2},
	U32:        {"U32", 1, 4},
	U64:        {"U64", 1, 8},
	BOOL:       {"BOOL", 1, 1},
}

// String returns the format's name as GGUF and safetensors write it, for
// example "F32" or "Q4_K", and that of F8_E4M3_32 in their style.
func (d DType) String() string {
	if !d.known() {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// BlockLen returns the number of elements in a block: 1 for a plain format,
// 32 or 256 for a quantization, and 0 for a value that names no format.
func (d DType) BlockLen() int {
	if !d.known() {
		return 0
	}
	return dtypes[d].elems
}

// BlockBytes returns the number of bytes in a block, or 0 for a value that
// names no format.
func (d DType) BlockBytes() int {
	if !d.known() {
		return 0
	}
	return dtypes[d].bytes
}

// Quantized reports whether the format packs several elements into one block.
func (d DType) Quantized() bool { return d.BlockLen() > 1 }

// Weight reports whether weights may have the format: whether it is one of
// [F32] to [F8_E4M3_32].
func (d DType) Weight() bool { return d <= F8_E4M3_32 }

// Size returns the number of bytes that elems elements take. It returns an
// error that wraps [ErrDType] when d names no format, and one that wraps
// [ErrSize] when elems is negative, is not a multiple of the block, or takes
// more bytes than an int can count.
func (d DType) Size(elems int) (int, error) {
	if !d.known() {
		return 0, fmt.Errorf("tensor: %w: %v", ErrDType, d)
	}
	row := dtypes[d]
	if elems < 0 {
		return 0, fmt.Errorf("tensor: %w: %d elements of %v", ErrSize, elems, d)
	}
	if elems%row.elems != 0 {
		return 0, fmt.Errorf("tensor: %w: %d elements are not a multiple of the %d in a block of %v",
			ErrSize, elems, row.elems, d)
	}
	n, ok := mul(elems/row.elems, row.bytes)
	if !ok {
		return 0, fmt.Errorf("tensor: %w: %d elements of %v take more bytes than an int can count", ErrSize, elems, d)
	}
	return n, nil
}

func (d DType) known() bool { return int(d) < len(dtypes) }

// ParseDType returns the format of that name, as [DType.String] writes it; case
// does not matter. An unknown name is an error that wraps [ErrDType]. It knows
// F8_E4M3_32 too, which a reader of files must refuse.
func ParseDType(name string) (DType, error) {
	for i, row := range dtypes {
		if strings.EqualFold(row.name, name) {
			return DType(i), nil
		}
	}
	return 0, fmt.Errorf("tensor: %w: %q", ErrDType, name)
}

// mul returns a*b of two numbers that are not negative, and whether an int
// holds the product.
func mul(a, b int) (int, bool) {
	hi, lo := bits.Mul(uint(a), uint(b))
	return int(lo), hi == 0 && int(lo) >= 0
}
