package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// A NotFiniteError is a number of a weight that is NaN or infinite, or a scale
// that takes values of its block beyond float32.
type NotFiniteError struct {
	Offset int     // of the number, in bytes from where the data begins
	Scale  bool    // it is the scale of a block
	Value  float64 // what it is
	Addr   uintptr // where it lies in memory
}

// Error names the number and where it is.
func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("tensor: at byte %d: %s", e.Offset, e.Problem())
}

// Problem is what is wrong with the number, without its place.
func (e *NotFiniteError) Problem() string {
	what := "value"
	if e.Scale {
		what = "scale"
	}
	if e.Value-e.Value != 0 {
		return fmt.Sprintf("the %s is %v", what, e.Value)
	}
	return fmt.Sprintf("the %s is %v, which leaves the range of float32", what, e.Value)
}

// halfScales are the bytes of a block at which a format keeps scales in float16:
// one, or two that follow each other. All values of a block are multiplied with its
// scale or are a sum with a multiple of it, so that a block has values that are not
// finite where a scale is not, and only there, as no product of a finite one leaves
// float32.
var halfScales = [F8_E4M3_32 + 1][]int{
	Q4_0: {0}, Q4_1: {0, 2}, Q5_0: {0}, Q5_1: {0, 2}, Q8_0: {0},
	Q2_K: {80, 82}, Q3_K: {108}, Q4_K: {0, 2}, Q5_K: {0, 2}, Q6_K: {208},
	IQ4_NL: {0}, IQ4_XS: {0}, IQ1_S: {0}, IQ2_XXS: {0}, IQ2_XS: {0}, IQ2_S: {0}, IQ3_XXS: {0}, IQ3_S: {0},
	TQ1_0: {52}, TQ2_0: {64},
}

// A screen finds the numbers to look at among many: those for which adding to what
// mask leaves of a word carries into a bit of top. No sum carries any further, so
// that several numbers lie side by side in a word.
type screen struct {
	at             int // of the word in a block; unused where every word holds values
	mask, add, top uint64
}

// screens holds those of the formats of weights. In floats a number is looked at
// whose exponent is all ones, so that one more carries into its sign.
var screens = func() (all [F8_E4M3_32 + 1]screen) {
	lanes := func(mask, add, top, copies uint64) screen {
		return screen{0, mask * copies, add * copies, top * copies}
	}
	const two, four, eight = 1<<32 | 1, 1<<48 | 1<<32 | 1<<16 | 1, 0x0101010101010101
	all[F32] = lanes(0x7f800000, 1<<23, 1<<31, two)
	all[F16] = lanes(0x7c00, 1<<10, 1<<15, four)
	all[BF16] = lanes(0x7f80, 1<<7, 1<<15, four)
	all[F8_E4M3] = lanes(0x7f, 1, 1<<7, eight)
	all[F8_E5M2] = lanes(0x7c, 1<<2, 1<<7, eight)
	// A float64 from here on is nearer to 2^128 than to the largest float32.
	const beyond = 0x47effffff0000000
	all[F64] = lanes(1<<63-1, 1<<63-beyond, 1<<63, 1)
	for d, scales := range halfScales {
		if len(scales) == 0 {
			continue
		}
		s := &all[d]
		s.at = min(scales[0], DType(d).BlockBytes()-4)
		for _, at := range scales {
			shift := 8 * (at - s.at)
			s.mask, s.add, s.top = s.mask|0x7c00<<shift, s.add|1<<10<<shift, s.top|1<<15<<shift
		}
	}
	// Exponents of 253 and more take some values out of float32, 255 is NaN.
	all[MXFP4] = screen{0, 0xff, 256 - 253, 1 << 8}
	// The five bits of the exponent lie apart; what is added is the bits between them,
	// so that a carry passes.
	all[IQ1_M] = screen{52, 0x7000c000, 0x0fff0000 + 0x4000, 1 << 31}
	all[F8_E4M3_32] = screen{0, 0, 1, 1} // every block: its source has looked at both parts
	return all
}()

// CheckFinite looks for the first number in data, blocks of format d, that makes
// [Dequantize] give a value that is NaN or infinite, and returns it as a
// [*NotFiniteError]. It reads every block, at about the speed of memory. Formats of
// integers have no such numbers.
//
// It returns an error that wraps [ErrDType] when d names no format and one that
// wraps [ErrSize] when data is no whole number of blocks.
func CheckFinite(d DType, data []byte) error {
	if !d.known() {
		return fmt.Errorf("tensor: %w: %v", ErrDType, d)
	}
	size := d.BlockBytes()
	if len(data)%size != 0 {
		return fmt.Errorf("tensor: %w: %d bytes are not a multiple of the %d in a block of %v", ErrSize, len(data), size, d)
	}
	if !d.Weight() {
		return nil
	}
	s := &screens[d]
	seen, span := s.words, 4096
	if d.Quantized() {
		seen, span = func(data []byte) bool { return s.blocks(data, size) }, 64*size
	}
	for at := 0; at < len(data); at += span {
		piece := data[at:min(at+span, len(data))]
		if !seen(piece) {
			continue
		}
		for b := 0; b < len(piece); b += size {
			if e := notFinite(d, piece[b:b+size]); e != nil {
				e.Offset += at + b
				e.Addr = uintptr(unsafe.Pointer(&data[e.Offset]))
				return e
			}
		}
	}
	return nil
}

// words reports whether a number of data, which is nothing else, is to be looked at.
func (s *screen) words(data []byte) bool {
	le := binary.LittleEndian
	mask, add := s.mask, s.add
	var even, odd uint64
	i := 0
	for ; i+64 <= len(data); i += 64 {
		w := (*[64]byte)(data[i:])
		even |= le.Uint64(w[0:])&mask + add
		odd |= le.Uint64(w[8:])&mask + add
		even |= le.Uint64(w[16:])&mask + add
		odd |= le.Uint64(w[24:])&mask + add
		even |= le.Uint64(w[32:])&mask + add
		odd |= le.Uint64(w[40:])&mask + add
		even |= le.Uint64(w[48:])&mask + add
		odd |= le.Uint64(w[56:])&mask + add
	}
	for i < len(data) {
		var last [8]byte // zeros are finite
		i += copy(last[:], data[i:])
		even |= le.Uint64(last[:])&mask + add
	}
	return (even|odd)&s.top != 0
}

// blocks reports whether one of data's blocks of so many bytes is to be looked at.
func (s *screen) blocks(data []byte, size int) bool {
	mask, add := uint32(s.mask), uint32(s.add)
	var seen uint32
	for at := s.at; at+4 <= len(data); at += size {
		seen |= binary.LittleEndian.Uint32(data[at:at+4:at+4])&mask + add
	}
	return seen&uint32(s.top) != 0
}

// notFinite is the number of a block of d with which a value is not finite, or nil.
func notFinite(d DType, block []byte) *NotFiniteError {
	for _, at := range halfScales[d] {
		if v := f16At(block[at:]); v-v != 0 {
			return &NotFiniteError{Offset: at, Scale: true, Value: float64(v)}
		}
	}
	if len(halfScales[d]) > 0 {
		return nil
	}
	var room [256]float32
	values := room[:d.BlockLen()]
	_ = Dequantize(d, values, block) // the sizes agree
	for i, v := range values {
		if v-v == 0 {
			continue
		}
		switch d {
		case F8_E4M3_32:
			if code := f8E4M3Values[block[4+i]]; code-code != 0 {
				return &NotFiniteError{Offset: 4 + i, Value: float64(code)}
			}
			return &NotFiniteError{Scale: true, Value: float64(math.Float32frombits(binary.LittleEndian.Uint32(block)))}
		case F64:
			return &NotFiniteError{Value: math.Float64frombits(binary.LittleEndian.Uint64(block))}
		case MXFP4:
			return &NotFiniteError{Scale: true, Value: float64(e8m0(block[0]))}
		case IQ1_M:
			return &NotFiniteError{Offset: 48, Scale: true, Value: float64(iq1mScale(binary.LittleEndian.Uint64(block[48:])))}
		}
		return &NotFiniteError{Value: float64(v)}
	}
	return nil
}
