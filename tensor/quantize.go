package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Quantize writes blocks of format d to dst whose values, as [Dequantize] returns them, equal or
// approximate those of src. It chooses scales for a small sum of squared differences. The same
// values give the same bytes on every machine. It allocates nothing.
//
// The formats are F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K and Q6_K. The error wraps [ErrDType] for
// another format, [ErrSize] if the sizes disagree, and [ErrValue] for a value that the format
// cannot represent: in a block format one that is not finite or exceeds 65504 in size, in F16 and
// BF16 a finite one that would become infinite. After an error, the contents of dst are undefined.
func Quantize(d DType, dst []byte, src []float32) error {
	size, err := d.Size(len(src))
	if err != nil {
		return err
	}
	if size != len(dst) {
		return fmt.Errorf("tensor: %w: %d elements of %v take %d bytes, but dst has %d", ErrSize, len(src), d, size, len(dst))
	}
	if d.Quantized() {
		for i, v := range src {
			if !(v >= -maxF16 && v <= maxF16) {
				return unheld(d, i, v)
			}
		}
	}
	switch d {
	case F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	case F16:
		return quantizeHalf(d, dst, src, F32ToF16, 0x7c00)
	case BF16:
		return quantizeHalf(d, dst, src, F32ToBF16, 0x7f80)
	case Q4_0:
		quantizeQ4_0(dst, src)
	case Q8_0:
		quantizeQ8_0(dst, src)
	case Q4_K:
		quantizeQ4_K(dst, src)
	case Q5_K:
		quantizeQ5_K(dst, src)
	case Q6_K:
		quantizeQ6_K(dst, src)
	default:
		return fmt.Errorf("tensor: %w: cannot quantize to %v; choose F16, BF16, Q8_0, Q6_K, Q5_K, Q4_K or Q4_0", ErrDType, d)
	}
	return nil
}

// maxF16 is the largest F16 number, the format of blocks' scales.
const maxF16 = 65504

// unheld returns the error for element i.
func unheld(d DType, i int, v float32) error {
	return fmt.Errorf("tensor: %w: element %d is %v, which %v cannot hold; choose F32", ErrValue, i, v, d)
}

// quantizeHalf writes 16-bit numbers; infinity has the bits of their infinity.
func quantizeHalf(d DType, dst []byte, src []float32, round func(float32) uint16, infinity uint16) error {
	for i, v := range src {
		h := round(v)
		if h&0x7fff == infinity && !math.IsInf(float64(v), 0) {
			return unheld(d, i, v)
		}
		binary.LittleEndian.PutUint16(dst[2*i:], h)
	}
	return nil
}

// putF16 writes the binary16 number nearest to v and returns its value.
func putF16(b []byte, v float64) float32 {
	h := F32ToF16(float32(v))
	binary.LittleEndian.PutUint16(b, h)
	return F16ToF32(h)
}

// putFactor is putF16 for a factor of several groups' integers. The integers cannot compensate for
// a factor that is much too small. Near zero, where binary16 is coarse, it therefore rounds up.
func putFactor(b []byte, v float64) float32 {
	h := F32ToF16(float32(v))
	if got := float64(F16ToF32(h)); max(got, -got) < max(v, -v)*(1-1.0/128) {
		h++
	}
	binary.LittleEndian.PutUint16(b, h)
	return F16ToF32(h)
}

// largestOf returns the value in x with the largest magnitude, the first of equals.
func largestOf(x []float32) float32 {
	top := float32(0)
	for _, v := range x {
		if max(v, -v) > max(top, -top) {
			top = v
		}
	}
	return top
}
