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

// A screen finds the numbers to look at among many: those for which adding to what
// mask leaves of a word carries into a bit of top. No sum carries any further, so
// that several numbers lie side by side in a word.
type screen struct {
	at             int // of the word in a block; unused where every word holds values
	mask, add, top uint64
}

// screens holds those of the formats of weights.
var screens = func() (all [F8_E4M3_32 + 1]screen) {
	for d := range all {
		all[d] = screenOf(&formats[d])
	}
	return all
}()

// screenOf is the screen of a format. With a float16 as their scale, or two, values of a
// block are its products or a sum of its products: no product of a finite one leaves
// float32, so that values are not finite where a scale is not, and only there.
func screenOf(f *Format) (s screen) {
	switch f.Scale {
	case NoScale:
		// What is added carries into the sign from NotFinite on.
		width := 8 * f.BlockBytes
		sign := uint64(1) << (width - 1)
		for at := 0; at < 64; at += width {
			s.mask |= (sign - 1) << at
			s.add |= (sign - f.NotFinite) << at
			s.top |= sign << at
		}
	case F16Scale:
		s.at = min(f.Scales[0], f.BlockBytes-4)
		for _, at := range f.Scales {
			shift := 8 * (at - s.at)
			s.mask, s.add, s.top = s.mask|0x7c00<<shift, s.add|1<<10<<shift, s.top|1<<15<<shift
		}
	case E8M0Scale:
		// With the largest of the table an exponent of 2^(255-e) and more leaves float32.
		most := 0.0
		for _, v := range f.Table {
			most = max(most, math.Abs(float64(v))*f.Factor.First)
		}
		s = screen{f.Scales[0], 0xff, 1 + uint64(math.Ilogb(most)), 1 << 8}
	case NibbleScale:
		// The five bits of the exponent lie apart, in the last two words; what is added is
		// the bits between them, so that a carry passes.
		s = screen{f.Scales[0] + 4, 0x7000c000, 0x0fff0000 + 0x4000, 1 << 31}
	case F32Scale:
		s = screen{0, 0, 1, 1} // every block: its source has looked at both parts
	}
	return s
}

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
	var values []float32 // of a block
	for at := 0; at < len(data); at += span {
		piece := data[at:min(at+span, len(data))]
		if !seen(piece) {
			continue
		}
		if values == nil {
			values = make([]float32, d.BlockLen())
		}
		for b := 0; b < len(piece); b += size {
			if e := notFinite(d, piece[b:b+size], values); e != nil {
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

// notFinite is the number of a block of d with which a value is not finite, or nil. It
// has room for its values.
func notFinite(d DType, block []byte, values []float32) *NotFiniteError {
	f := &formats[d]
	if f.Scale == F16Scale {
		for _, at := range f.Scales {
			if v := f16At(block[at:]); v-v != 0 {
				return &NotFiniteError{Offset: at, Scale: true, Value: float64(v)}
			}
		}
		return nil
	}
	f.decode(values, block)
	for i, v := range values {
		if v-v == 0 {
			continue
		}
		switch f.Scale {
		case E8M0Scale:
			return &NotFiniteError{Offset: f.Scales[0], Scale: true, Value: float64(e8m0(block[f.Scales[0]]))}
		case NibbleScale:
			return &NotFiniteError{Offset: f.Scales[0], Scale: true, Value: float64(iq1mScale(binary.LittleEndian.Uint64(block[f.Scales[0]:])))}
		case F32Scale:
			if code := f8E4M3Values[block[4+i]]; code-code != 0 {
				return &NotFiniteError{Offset: 4 + i, Value: float64(code)}
			}
			return &NotFiniteError{Scale: true, Value: float64(math.Float32frombits(binary.LittleEndian.Uint32(block)))}
		}
		if d == F64 {
			return &NotFiniteError{Value: math.Float64frombits(binary.LittleEndian.Uint64(block))}
		}
		return &NotFiniteError{Value: float64(v)}
	}
	return nil
}
