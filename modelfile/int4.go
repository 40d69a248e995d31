package modelfile

import (
	"encoding/binary"
	"math"

	"github.com/realizar/realizar/tensor"
)

// Weights of 4-bit numbers, packed eight to a 32-bit word. A value is scale * (number - zero
// point). The columns of a group share a scale and a zero point. If groups are whole blocks of 32,
// a block converts exactly: to Q4_0 if all zero points are 8, else to Q5_0.

// An int4 is such a weight. The conventions differ in the layout, which strides describe.
type int4 struct {
	file                 *File          // for errors
	words, zeros, scales *tensor.Tensor // zeros is nil if all zero points are 8
	rows, cols, group    int

	// A word holds eight columns of a row, lowest bits first. If across is true, it holds eight
	// rows of a column in the order of places.
	across    bool
	wordByRow int // words between rows; if across, words of eight rows are adjacent
	wordByCol int // words between groups of eight columns; if across, between columns

	// Words of zero points hold eight rows of a group in the order of places.
	zeroByRows, zeroByGroup int
	places                  *[8]int // by row: the index of its number in a word, from the lowest bits
	added                   int     // to stored zero points

	scaleByRow, scaleByGroup int

	fifth bool // the weight becomes Q5_0
}

// inOrder are the places of numbers that are packed in their natural order.
var inOrder = [8]int{0, 1, 2, 3, 4, 5, 6, 7}

// midpoint is the zero point of Q4_0.
const midpoint = 8

// check compares the formats and shapes of the parts with the required ones.
func (w *int4) check(words, zeros, scales [2]int) error {
	fail := func(t *tensor.Tensor, kind error, format string, args ...any) error {
		return w.file.errorIn(t, 0, kind, format, args...)
	}
	if w.cols%blockElems != 0 {
		return fail(w.words, ErrUnsupported, "a weight with rows of %d numbers; supported are multiples of %d", w.cols, blockElems)
	}
	for _, p := range []struct {
		t    *tensor.Tensor
		want [2]int
	}{{w.words, words}, {w.zeros, zeros}, {w.scales, scales}} {
		if p.t != nil && (len(p.t.Shape) != 2 || [2]int(p.t.Shape) != p.want) {
			return fail(p.t, ErrFormat, "shape %v, want %v for a weight of %d rows and %d columns in groups of %d", p.t.Shape, p.want, w.rows, w.cols, w.group)
		}
	}
	for _, t := range []*tensor.Tensor{w.words, w.zeros} {
		if t != nil && t.DType != tensor.I32 {
			return fail(t, ErrFormat, "packed numbers in %v, want I32", t.DType)
		}
	}
	if !isFloat(w.scales.DType) {
		return fail(w.scales, ErrFormat, "scales of %v, want F16, BF16 or F32", w.scales.DType)
	}
	return nil
}

// groups returns the number of groups in n columns.
func groups(n, group int) int { return (n + group - 1) / group }

// inRow returns the size of a group in columns; a whole row of cols columns may be one group.
func inRow(group, cols int) int {
	if group == wholeGroup {
		return max(1, cols)
	}
	return group
}

// tensor returns the weight as a tensor called name.
func (w *int4) tensor(name string) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, DType: tensor.Q4_0, Shape: []int{w.rows, w.cols}, Source: w}
	if w.fifth = !w.centred(); w.fifth {
		t.DType = tensor.Q5_0
	}
	return t
}

// centred reports whether all zero points are 8. It stops at the first that is not.
func (w *int4) centred() bool {
	if w.zeros == nil || w.rows == 0 {
		return true
	}
	want := uint32(midpoint-w.added) * 0x11111111
	for g := range groups(w.cols, w.group) {
		for n := 0; n < w.rows; n += 8 {
			differ := word(w.zeros, n/8*w.zeroByRows+g*w.zeroByGroup) ^ want
			if left := w.rows - n; left < 8 {
				differ &= 1<<(4*left) - 1 // only words in natural order can be partly filled
			}
			if differ != 0 {
				return false
			}
		}
	}
	return true
}

func word(t *tensor.Tensor, i int) uint32 { return binary.LittleEndian.Uint32(t.Data[4*i:]) }

// Parts implements [tensor.Source].
func (w *int4) Parts() []*tensor.Tensor {
	parts := []*tensor.Tensor{w.words, w.scales}
	if w.zeros != nil {
		parts = append(parts, w.zeros)
	}
	return parts
}

// tileRows is the number of rows converted together if the words of adjacent rows are adjacent in
// memory. The words of a tile's rows for the same columns then fill cache lines, and the output
// stays in the first-level cache.
const tileRows = 128

// A tile holds some rows of a weight during conversion.
type tile struct {
	*int4
	words []byte
	lines [blockElems][tileRows / 8]uint32 // if across, the words of 32 columns
	eight [8][4]uint64                     // the numbers of eight rows: per row four uint64 of eight columns, one byte each
}

// ReadRows implements [tensor.Source].
func (w *int4) ReadRows(dst []byte, lo, hi int) error {
	block, together := tensor.Q4_0.BlockBytes(), tileRows
	if w.fifth {
		block = tensor.Q5_0.BlockBytes()
	}
	if w.wordByCol == 1 {
		together = 8 // the words of a row are adjacent
	}
	size := w.cols / blockElems * block
	t := &tile{int4: w, words: w.words.Data}
	for first, end := lo, 0; first < hi; first = end {
		end = min(hi, (first/together+1)*together)
		for k := 0; k < w.cols; k += blockElems {
			if w.across {
				t.gather(first/8, (end+7)/8, k)
			}
			to, group := dst[(first-lo)*size+k/blockElems*block:], k/w.group
			for n := first &^ 7; n < end; n += 8 {
				if w.across {
					t.turn(n/8 - first/8)
				} else {
					t.unpack(n, k)
				}
				for r := max(n, first); r < min(n+8, end); r++ {
					scale, err := w.scale(r, group)
					if err != nil {
						return err
					}
					if at := to[(r-first)*size:]; w.fifth {
						putQ5_0(at, scale, &t.eight[r-n], w.zeroPoint(r, group))
					} else {
						putQ4_0(at, scale, &t.eight[r-n])
					}
				}
			}
		}
	}
	return nil
}

// unpack loads the numbers of eight rows from row n and 32 columns from column k.
func (t *tile) unpack(n, k int) {
	le, step := binary.LittleEndian, 4*t.wordByCol
	for r := range min(8, t.rows-n) {
		at, q := 4*((n+r)*t.wordByRow+k/8*t.wordByCol), &t.eight[r]
		for j := range q {
			q[j] = spread(le.Uint32(t.words[at:]))
			at += step
		}
	}
}

// gather loads words first to end, of eight rows each, for 32 columns from column k. Columns are
// far apart in memory, often by a power of two, so caches hold few of them at a time.
func (t *tile) gather(first, end, k int) {
	for i := range t.lines {
		words := t.words[4*((k+i)*t.wordByCol+first):][:4*(end-first)]
		line := &t.lines[i]
		for j := range line {
			if len(words) < 4 {
				break
			}
			line[j] = binary.LittleEndian.Uint32(words)
			words = words[4:]
		}
	}
}

// turn loads the numbers of eight rows from word n of the gathered columns.
func (t *tile) turn(n int) {
	var x [8]uint64
	for j := range 4 {
		for i := range x {
			x[i] = spread(t.lines[8*j+i][n])
		}
		transpose(&x)
		for r, place := range t.places {
			t.eight[r][j] = x[place&7]
		}
	}
}

// zeroPoint returns the zero point of row r in a group.
func (w *int4) zeroPoint(r, group int) int {
	return int(word(w.zeros, r/8*w.zeroByRows+group*w.zeroByGroup)>>(4*w.places[r%8])&15) + w.added
}

// scale returns the scale of row r in a group, as the bits of a float16.
func (w *int4) scale(r, group int) (uint16, error) {
	i := r*w.scaleByRow + group*w.scaleByGroup
	if w.scales.DType == tensor.F16 {
		if h := binary.LittleEndian.Uint16(w.scales.Data[2*i:]); h&0x7c00 != 0x7c00 {
			return h, nil
		}
	}
	v := floatAt(w.scales, i)
	h := tensor.F32ToF16(v)
	switch at := i * w.scales.DType.BlockBytes(); {
	case !(v >= -math.MaxFloat32 && v <= math.MaxFloat32):
		return 0, w.file.errorIn(w.scales, at, ErrFormat, "a scale of %v: the file is damaged; download it again", v)
	case tensor.F16ToF32(h) != v:
		return 0, w.file.errorIn(w.scales, at, ErrUnsupported, "a scale of %v, which F16 does not hold exactly", v)
	}
	return h, nil
}

// Masks with one number per byte.
const (
	ones    = 0x0101010101010101
	nibbles = 0x0f * ones
)

// spread returns the eight numbers of a word, one per byte, lowest first.
func spread(w uint32) uint64 {
	v := uint64(w)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	return (v | v<<4) & nibbles
}

// transpose swaps byte j of word i with byte i of word j.
func transpose(x *[8]uint64) {
	for i := range 4 {
		const low = 0x00000000ffffffff
		a, b := x[i], x[i+4]
		x[i], x[i+4] = a&low|b<<32, a>>32|b&^low
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		const low = 0x0000ffff0000ffff
		a, b := x[i], x[i+2]
		x[i], x[i+2] = a&low|b&low<<16, a>>16&low|b&^low
	}
	for i := 0; i < 8; i += 2 {
		const low = 0x00ff00ff00ff00ff
		a, b := x[i], x[i+1]
		x[i], x[i+1] = a&low|b&low<<8, a>>8&low|b&^low
	}
}

// putQ4_0 writes a block: the scale, then elements 0 to 15 in the low nibbles and 16 to 31 in the
// high nibbles.
func putQ4_0(dst []byte, scale uint16, q *[4]uint64) {
	le := binary.LittleEndian
	dst = dst[:18]
	le.PutUint16(dst, scale)
	le.PutUint64(dst[2:], q[0]|q[2]<<4)
	le.PutUint64(dst[10:], q[1]|q[3]<<4)
}

// putQ5_0 writes a block of numbers with a zero point of 0 to 16: the scale, the fifth bits of all
// elements, and the other four bits as in Q4_0. Q5_0 itself subtracts 16.
func putQ5_0(dst []byte, scale uint16, q *[4]uint64, zero int) {
	le := binary.LittleEndian
	dst = dst[:22]
	up := uint64(16-zero) * ones
	a, b, c, d := q[0]+up, q[1]+up, q[2]+up, q[3]+up // none exceeds 31
	le.PutUint16(dst, scale)
	le.PutUint32(dst[2:], fifthBits(a)|fifthBits(b)<<8|fifthBits(c)<<16|fifthBits(d)<<24)
	le.PutUint64(dst[6:], a&nibbles|c&nibbles<<4)
	le.PutUint64(dst[14:], b&nibbles|d&nibbles<<4)
}

// fifthBits gathers bit 4 of every byte, starting with the lowest byte.
func fifthBits(v uint64) uint32 { return uint32(v >> 4 & ones * 0x0102040810204080 >> 56) }
