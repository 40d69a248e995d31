package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dequantize writes to dst the values that the blocks of src stand for; all of
// len(dst) elements, which must be exactly those that src holds. It allocates
// nothing. Integers and F64 are rounded to the nearest float32, and BOOL is 0
// or 1.
//
// The block formats are those of ggml; products and sums are each rounded to
// float32, in the order in which ggml's reference computes them, on every
// machine.
//
// It returns an error that wraps [ErrDType] when d names no format and one that
// wraps [ErrSize] when the sizes disagree; nothing is written then.
func Dequantize(d DType, dst []float32, src []byte) error {
	size, err := d.Size(len(dst))
	if err != nil {
		return err
	}
	if size != len(src) {
		return fmt.Errorf("tensor: %w: %d elements of %v take %d bytes and there are %d", ErrSize, len(dst), d, size, len(src))
	}
	switch d {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case Q4_0:
		dequantizeQ4_0(dst, src)
	case Q4_1:
		dequantizeQ4_1(dst, src)
	case Q5_0:
		dequantizeQ5_0(dst, src)
	case Q5_1:
		dequantizeQ5_1(dst, src)
	case Q8_0:
		dequantizeQ8_0(dst, src)
	case Q2_K:
		dequantizeQ2_K(dst, src)
	case Q3_K:
		dequantizeQ3_K(dst, src)
	case Q4_K:
		dequantizeQ4_K(dst, src)
	case Q5_K:
		dequantizeQ5_K(dst, src)
	case Q6_K:
		dequantizeQ6_K(dst, src)
	case IQ4_NL:
		dequantizeIQ4_NL(dst, src)
	case IQ4_XS:
		dequantizeIQ4_XS(dst, src)
	case MXFP4:
		dequantizeMXFP4(dst, src)
	case IQ1_S:
		dequantizeIQ1_S(dst, src)
	case IQ1_M:
		dequantizeIQ1_M(dst, src)
	case IQ2_XXS:
		dequantizeIQ2_XXS(dst, src)
	case IQ2_XS:
		dequantizeIQ2_XS(dst, src)
	case IQ2_S:
		dequantizeIQ2_S(dst, src)
	case IQ3_XXS:
		dequantizeIQ3_XXS(dst, src)
	case IQ3_S:
		dequantizeIQ3_S(dst, src)
	case TQ1_0:
		dequantizeTQ1_0(dst, src)
	case TQ2_0:
		dequantizeTQ2_0(dst, src)
	case F8_E4M3:
		for i := range dst {
			dst[i] = f8E4M3Values[src[i]]
		}
	case F8_E5M2:
		for i := range dst {
			dst[i] = f8E5M2ToF32(src[i])
		}
	case F8_E4M3_32:
		dequantizeF8E4M3(dst, src)
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	default:
		return convertPlain(d, dst, src)
	}
	return nil
}

// convertPlain is [Dequantize] for the formats that files hold beside weights.
func convertPlain(d DType, dst []float32, src []byte) error {
	le := binary.LittleEndian
	switch d {
	case I8:
		for i := range dst {
			dst[i] = float32(int8(src[i]))
		}
	case I16:
		for i := range dst {
			dst[i] = float32(int16(le.Uint16(src[2*i:])))
		}
	case I32:
		for i := range dst {
			dst[i] = float32(int32(le.Uint32(src[4*i:])))
		}
	case I64:
		for i := range dst {
			dst[i] = float32(int64(le.Uint64(src[8*i:])))
		}
	case U8:
		for i := range dst {
			dst[i] = float32(src[i])
		}
	case U16:
		for i := range dst {
			dst[i] = float32(le.Uint16(src[2*i:]))
		}
	case U32:
		for i := range dst {
			dst[i] = float32(le.Uint32(src[4*i:]))
		}
	case U64:
		for i := range dst {
			dst[i] = float32(le.Uint64(src[8*i:]))
		}
	case BOOL:
		for i := range dst {
			dst[i] = 0
			if src[i] != 0 {
				dst[i] = 1
			}
		}
	default:
		return fmt.Errorf("tensor: %w: %v has no values", ErrDType, d)
	}
	return nil
}

// f16At returns the binary16 number in the first two bytes of b, the form in
// which blocks hold their scales.
func f16At(b []byte) float32 { return F16ToF32(uint16(b[0]) | uint16(b[1])<<8) }
