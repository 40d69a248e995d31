package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// A NotFiniteError reports a number of a weight that is NaN or infinite, or a scale that takes
// values of its block out of the range of float32.
type NotFiniteError struct {
	Offset int     // byte offset of the number in the data
	Scale  bool    // the number is the scale of a block
	Value  float64 // the number
	Addr   uintptr // its address in memory
}

// Error returns a message with the number and its offset.
func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("tensor: at byte %d: %s", e.Offset, e.Problem())
}

// Problem describes the number without its place.
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

// A screen finds words that may contain a number that is not finite. A word is suspect if adding
// add to word&mask carries into a bit of top. No sum carries further, so that a word may contain
// several numbers.
type screen struct {
	at             int // offset of the word in a block; unused if every word holds values
	mask, add, top uint64
}

// screens holds the screens of the formats of weights.
var screens = func() (all [F8_E4M3_32 + 1]screen) {
	for d := range all {
		all[d] = screenOf(&formats[d])
	}
	return all
}()

// screenOf returns the screen of a format. If a format has one or two float16 scales, values are
// products with them, or sums of such products. No product with a finite scale exceeds float32, so
// values are not finite if and only if a scale is not.
func screenOf(f *Format) (s screen) {
	switch f.Scale {
	case NoScale:
		// Adding this to a number carries into the sign if the number is at least NotFinite.
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
		// With the largest level of the table, scales from 2^(255-e) on exceed float32.
		most := 0.0
		for _, v := range f.Table {
			most = max(most, math.Abs(float64(v))*f.Factor.First)
		}
		s = screen{f.Scales[0], 0xff, 1 + uint64(math.Ilogb(most)), 1 << 8}
	case NibbleScale:
		// The five bits of the exponent are in two separate places of the last two words. add has
		// ones between them, so that a carry passes through.
		s = screen{f.Scales[0] + 4, 0x7000c000, 0x0fff0000 + 0x4000, 1 << 31}
	case F32Scale:
		s = screen{0, 0, 1, 1} // every block: its source has already checked both parts
	}
	return s
}

// CheckFinite looks for the first number in data, blocks of format d, that makes [Dequantize]
// return NaN or an infinity, and returns it as a [*NotFiniteError]. It reads every block, at about
// the bandwidth of memory. Formats of integers have no such numbers.
//
// The error wraps [ErrDType] if d is not a known format, and [ErrSize] if data is not a whole
// number of blocks.
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
	var values []float32 // values of a block
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

// words reports whether data, which consists of numbers only, has a suspect word.
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

// blocks reports whether data has a suspect block; blocks have size bytes.
func (s *screen) blocks(data []byte, size int) bool {
	mask, add := uint32(s.mask), uint32(s.add)
	var seen uint32
	for at := s.at; at+4 <= len(data); at += size {
		seen |= binary.LittleEndian.Uint32(data[at:at+4:at+4])&mask + add
	}
	return seen&uint32(s.top) != 0
}

// notFinite returns the number that makes a value of the block not finite, or nil. values is
// scratch memory for the block's values.
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
			return &NotFiniteError{Offset: f.Scales[0], Scale: true, Value: float64(E8M0ToF32(block[f.Scales[0]]))}
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
