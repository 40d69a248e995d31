package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// cacheBlock is the number of values of a head that share a scale in a Q8_0 cache.
const cacheBlock = 32

// A kvPool is the pages of one state per token. A page holds, in this order,
//
//	keys         [kvHeads, headDim, pageTokens]
//	key scales   [kvHeads, headDim/n, pageTokens]
//	values       [kvHeads, pageTokens, valueDim]
//	value scales [kvHeads, pageTokens, valueDim/n]
//
// so that neighbors in memory are positions for products of queries and keys, and elements of the
// head for sums of values. n numbers along a head share a float16 scale: 32 signed bytes of a Q8_0
// cache, and all E4M3 numbers of an F8_E4M3 cache, see [roundHead]. The other formats have no
// scales. The numbers of an exact state are F32 with any cache.
//
// A state with keys only has its keys where others have values, as rows; if its keys are columns, it
// has no values.
type kvPool struct {
	*pagePool
	dtype      tensor.DType
	pageTokens int
	rows       int // of a page
	size       int // bytes per value, without scales
	row        int // length of a head's row: of its value or, if keys are rows, of its key

	keyScales, values, valueScales int // offsets in a page
}

// checkCache returns an error if a cache of dtype d cannot hold the states of p.
func checkCache(p *plan.Program, d tensor.DType) error {
	switch d {
	case tensor.F32, tensor.F16:
		return nil
	case tensor.Q8_0, tensor.F8_E4M3:
		if dim := p.MisfitHead(d); dim > 0 {
			return fmt.Errorf("cpu: no %v cache for heads of %d values, which is not a multiple of %d; use %v", d, dim, plan.HeadUnit(d), tensor.F16)
		}
		return nil
	}
	return fmt.Errorf("cpu: no %v cache; use %v, %v, %v or %v", d, tensor.F32, tensor.F16, tensor.Q8_0, tensor.F8_E4M3)
}

func newKVPool(pages *pagePool, l *plan.Limits) *kvPool {
	k := &kvPool{pagePool: pages, dtype: pages.state.Format(l.Cache), pageTokens: l.PageTokens, rows: pages.state.Rows(l.PageTokens)}
	s := &k.state
	k.row = s.ValueDim
	heads, scale := k.rows*s.KVHeads, 0
	keys := heads * s.HeadDim
	if k.rowKeys() {
		k.row, keys = s.HeadDim, 0
	}
	values := heads * k.row
	switch k.dtype {
	case tensor.F32:
		k.size = 4
	case tensor.F16:
		k.size = 2
	case tensor.Q8_0, tensor.F8_E4M3:
		k.size, scale = 1, 2
	}
	k.keyScales = keys * k.size
	k.values = k.keyScales + keys/k.shared(s.HeadDim)*scale
	k.valueScales = k.values + values*k.size
	return k
}

// rowKeys reports whether keys are rows.
func (k *kvPool) rowKeys() bool { return k.state.ValueDim == 0 && !k.columns }

// shared returns how many numbers of a head's dim share a scale, if the cache has scales.
func (k *kvPool) shared(dim int) int {
	if k.dtype == tensor.F8_E4M3 {
		return dim
	}
	return cacheBlock
}

// words returns the bytes b as a slice of T.
func words[T float32 | uint16 | int8](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}

// A slot is the place of one position and one key/value head in a page.
type slot struct {
	*kvPool
	page     []byte
	at, head int
}

// key and value return the slot's numbers, whose distance is apart, and their scales. They are the
// same if keys are rows.
func (s slot) key() (numbers, scales []byte, apart int) {
	if s.rowKeys() {
		return s.value()
	}
	d, n := s.state.HeadDim, s.rows
	return s.page[(s.head*d*n+s.at)*s.size : s.keyScales],
		s.page[s.keyScales:s.values][min(s.values-s.keyScales, (s.head*(d/s.shared(d))*n+s.at)*2):], n
}

func (s slot) value() (numbers, scales []byte, apart int) {
	d, row := s.row, s.head*s.rows+s.at
	return s.page[s.values+row*d*s.size : s.valueScales],
		s.page[s.valueScales:s.bytes][min(s.bytes-s.valueScales, row*(d/s.shared(d))*2):], 1
}

// store writes k [headDim] and v [valueDim]. It reports whether the cache can represent them:
// finite numbers must not become infinite, while NaN and infinities stay so. half [headDim] is
// scratch memory.
func (s slot) store(kernels *attentionKernels, k, v []float32, half []uint16) bool {
	if s.rowKeys() {
		return s.storeRow(kernels, k)
	}
	keys, keyScales, apart := s.key()
	kept := true
	switch s.dtype {
	case tensor.F32:
		keys := words[float32](keys)
		for i, x := range k {
			keys[i*apart] = x
		}
	case tensor.F16:
		halves := words[uint16](keys)
		kernels.halve(half, k)
		kept = holds(half, k)
		for i, h := range half {
			halves[i*apart] = h
		}
	case tensor.Q8_0:
		kept = quantizeHead(words[int8](keys), words[uint16](keyScales), apart, k)
	default:
		kept = roundHead(keys, words[uint16](keyScales), apart, k)
	}
	return (len(v) == 0 || s.storeRow(kernels, v)) && kept
}

// storeRow is like store for a row: a value or, if keys are rows, a key.
func (s slot) storeRow(kernels *attentionKernels, x []float32) bool {
	numbers, scales, _ := s.value()
	switch s.dtype {
	case tensor.F32:
		copy(words[float32](numbers), x)
		return true
	case tensor.F16:
		halves := words[uint16](numbers)[:len(x)]
		kernels.halve(halves, x)
		return holds(halves, x)
	case tensor.Q8_0:
		return quantizeHead(words[int8](numbers), words[uint16](scales), 1, x)
	}
	return roundHead(numbers, words[uint16](scales), 1, x)
}

const halfInf = 0x7c00 // float16 without the sign

// holds reports whether no finite number of x is infinite in h.
func holds(h []uint16, x []float32) bool {
	for i, v := range h {
		if v&0x7fff == halfInf && x[i]-x[i] == 0 {
			return false
		}
	}
	return true
}

// quantizeHead writes x in blocks of 32 signed bytes with a scale. Numbers, and likewise scales,
// are apart elements apart. It reports whether the scales can represent x.
func quantizeHead(q []int8, scales []uint16, apart int, x []float32) bool {
	ok := true
	for b := 0; b < len(x); b += cacheBlock {
		block := x[b : b+cacheBlock]
		var bits uint32 // largest magnitude; Inf and NaN exceed all numbers
		for _, v := range block {
			bits = max(bits, math.Float32bits(v)&^(1<<31))
		}
		largest := math.Float32frombits(bits)
		h := tensor.F32ToF16(largest / 127)
		if tensor.F16ToF32(h)*127.5 < largest {
			h++ // float16 is coarse near 0: a larger scale rather than a clipped value
		}
		scales[b/cacheBlock*apart] = h
		ok = ok && (h&0x7fff != halfInf || largest-largest != 0)
		scale := tensor.F16ToF32(h)
		if !(scale > 0 && scale-scale == 0) {
			// The block is zero, or its scale alone marks it as not finite.
			for i := range block {
				q[(b+i)*apart] = 0
			}
			continue
		}
		inverse := 1 / scale
		for i, v := range block {
			code := v * inverse
			if code > 127 {
				code = 127
			} else if code < -127 {
				code = -127
			}
			const whole = 3 << 22 // float32 has no fractions here, so that adding it rounds
			q[(b+i)*apart] = int8(math.Float32bits(code + whole))
		}
	}
	return ok
}

// roundHead writes x as E4M3 numbers, apart elements apart, with one scale. Their unit is 2^e: the
// smallest power of two, from 2^-32 on, for which the largest magnitude is at most 448 units. The
// scale is 256 units, because a code whose exponent and mantissa are moved to those of a float16 is
// a 256th of its number. roundHead reports whether the scale can represent x: it is a float16, so
// the largest magnitude is at most 448 * 2^7.
func roundHead(codes []byte, scale []uint16, apart int, x []float32) bool {
	var bits uint32 // largest magnitude; Inf and NaN exceed all numbers
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	const (
		least, most = -32, 7            // e
		seven       = 0x60_0000         // the mantissa of 448, which is 7/4 of 2^8
		up          = 1<<23 - 1 - seven // carries into the exponent where the mantissa is larger
	)
	e := max(least, int((bits+up)>>23)-127-8)
	if e > most {
		const notFinite = 0x7fff // the scale alone says so
		scale[0] = notFinite
		for i := range x {
			codes[i*apart] = 0
		}
		return bits >= 0x7f80_0000
	}
	scale[0] = tensor.F32ToF16(math.Float32frombits(uint32(127+8+e) << 23))
	inverse := math.Float32frombits(uint32(127-e) << 23)
	for i, v := range x {
		codes[i*apart] = roundE4M3(v * inverse)
	}
	return true
}

// roundE4M3 returns the E4M3 number nearest to v, or the even one of two equally near numbers.
// |v| is at most 448.
func roundE4M3(v float32) byte {
	b := math.Float32bits(v)
	sign := byte(b>>24) & 0x80
	b &^= 1 << 31
	if b >= (127-6)<<23 { // a normal number
		b -= (127 - 7) << 23
		return sign | byte((b+1<<19-1+b>>20&1)>>20)
	}
	const unit = 1 << 14 // the last bit of a float32 here is that of a subnormal E4M3, 2^-9
	return sign | byte(math.Float32bits(math.Float32frombits(b)+unit)-math.Float32bits(unit))
}

// floatKey and floatValue write the stored key [headDim] or value [valueDim] to x. Without values,
// floatValue writes the beginning of the key.
func (s slot) floatKey(x []float32) []float32   { return s.load(x, slot.key) }
func (s slot) floatValue(x []float32) []float32 { return s.load(x, slot.value) }

func (s slot) load(x []float32, place func(slot) (numbers, scales []byte, apart int)) []float32 {
	numbers, scales, apart := place(s)
	switch s.dtype {
	case tensor.F32:
		of := words[float32](numbers)
		for i := range x {
			x[i] = of[i*apart]
		}
	case tensor.F16:
		of := words[uint16](numbers)
		for i := range x {
			x[i] = tensor.F16ToF32(of[i*apart])
		}
	case tensor.Q8_0:
		of, scale := words[int8](numbers), words[uint16](scales)
		for i := range x {
			x[i] = float32(of[i*apart]) * tensor.F16ToF32(scale[i/cacheBlock*apart])
		}
	default:
		scale := tensor.F16ToF32(words[uint16](scales)[0])
		for i := range x {
			x[i] = halfOfE4M3(numbers[i*apart]) * scale
		}
	}
	return x
}

// A past locates the pages of one sequence in the current step.
type past struct {
	*kvPool
	pages []int32
	first int // logical page of pages[0]
}

func (e *executable) past(pool *kvPool, s int32) past {
	table := &e.batch.Tables[pool.state.Group]
	return past{pool, table.Pages[table.Start[s]:table.Start[s+1]], int(table.First[s])}
}

// slot returns the place of row pos and key/value head g. Rows are those of positions, or with
// [plan.State.Every] those of multiples. The page must be allocated.
func (p *past) slot(pos, g int) slot {
	page, at := p.place(pos)
	return slot{p.kvPool, p.kvPool.pages[p.pages[page-p.first]], at, g}
}

// place returns the page of row pos, and its number among the rows of that page.
func (p *past) place(pos int) (page, at int) {
	if every := p.state.Every; every > 0 {
		page = ((pos+1)*every - 1) / p.pageTokens
		return page, pos - page*p.pageTokens/every
	}
	return pos / p.pageTokens, pos % p.pageTokens
}

// left returns how many rows from pos on are in the same page.
func (p *past) left(pos int) int {
	if every := p.state.Every; every > 0 {
		page, _ := p.place(pos)
		return (page+1)*p.pageTokens/every - pos
	}
	return p.pageTokens - pos%p.pageTokens
}
