package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// cacheBlock values along a head share a scale, where the cache has scales.
const cacheBlock = 32

// A kvPool is the pages of one state per token. A page holds, in this order,
//
//	keys         [kvHeads, headDim, pageTokens]
//	key scales   [kvHeads, headDim/32, pageTokens]
//	values       [kvHeads, pageTokens, valueDim]
//	value scales [kvHeads, pageTokens, valueDim/32]
//
// so that neighbours in memory are positions where a query meets keys, and
// elements of the head where values are added up. A Q8_0 cache keeps signed bytes,
// each 32 along a head with a float16 that they are multiplied by; the others have
// no scales.
type kvPool struct {
	*pagePool
	dtype      tensor.DType
	pageTokens int
	size       int // bytes of a value, without scales

	keyScales, values, valueScales int // offsets in a page
}

// checkCache says whether the states of p can be kept in a cache of dtype d.
func checkCache(p *plan.Program, d tensor.DType) error {
	switch d {
	case tensor.F32, tensor.F16:
		return nil
	case tensor.Q8_0:
		if dim := p.MisfitHead(d); dim > 0 {
			return fmt.Errorf("cpu: no %v cache for heads of %d values, which are no multiple of %d; use %v", d, dim, cacheBlock, tensor.F16)
		}
		return nil
	}
	return fmt.Errorf("cpu: no %v cache; use %v, %v or %v", d, tensor.F32, tensor.F16, tensor.Q8_0)
}

func newKVPool(pages *pagePool, l *plan.Limits) *kvPool {
	k := &kvPool{pagePool: pages, dtype: l.Cache, pageTokens: l.PageTokens}
	s := &k.state
	keys, values, scale := k.pageTokens*s.KVHeads*s.HeadDim, k.pageTokens*s.KVHeads*s.ValueDim, 0
	switch k.dtype {
	case tensor.F32:
		k.size = 4
	case tensor.F16:
		k.size = 2
	case tensor.Q8_0:
		k.size, scale = 1, 2
	}
	k.keyScales = keys * k.size
	k.values = k.keyScales + keys/cacheBlock*scale
	k.valueScales = k.values + values*k.size
	return k
}

// words are the bytes b as numbers of another type.
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

// key and value are the slot's numbers, each apart from the next, and their scales.
func (s slot) key() (numbers, scales []byte, apart int) {
	d, n := s.state.HeadDim, s.pageTokens
	return s.page[(s.head*d*n+s.at)*s.size : s.keyScales],
		s.page[s.keyScales:s.values][min(s.values-s.keyScales, (s.head*(d/cacheBlock)*n+s.at)*2):], n
}

func (s slot) value() (numbers, scales []byte, apart int) {
	d, row := s.state.ValueDim, s.head*s.pageTokens+s.at
	return s.page[s.values+row*d*s.size : s.valueScales],
		s.page[s.valueScales:s.bytes][min(s.bytes-s.valueScales, row*(d/cacheBlock)*2):], 1
}

// store writes k [headDim] and v [valueDim] and reports whether the cache can hold them: what
// is not finite stays so, and what is may not become infinite. half [headDim] is work space.
func (s slot) store(kernels *attentionKernels, k, v []float32, half []uint16) bool {
	keys, keyScales, apart := s.key()
	values, valueScales, _ := s.value()
	switch s.dtype {
	case tensor.F32:
		keys := words[float32](keys)
		for i, x := range k {
			keys[i*apart] = x
		}
		copy(words[float32](values), v)
		return true
	case tensor.F16:
		halves := words[uint16](keys)
		kernels.halve(half, k)
		ok := holds(half, k)
		for i, h := range half {
			halves[i*apart] = h
		}
		halves = words[uint16](values)[:len(v)]
		kernels.halve(halves, v)
		return holds(halves, v) && ok
	default:
		kept := quantizeHead(words[int8](keys), words[uint16](keyScales), apart, k)
		return quantizeHead(words[int8](values), words[uint16](valueScales), 1, v) && kept
	}
}

const halfInf = 0x7c00 // as float16, without its sign

// holds reports whether h has no infinite number where x has a finite one.
func holds(h []uint16, x []float32) bool {
	for i, v := range h {
		if v&0x7fff == halfInf && x[i]-x[i] == 0 {
			return false
		}
	}
	return true
}

// quantizeHead writes x in blocks of a scale and 32 signed bytes, numbers and
// scales apart from each other. It reports whether the scales can hold x.
func quantizeHead(q []int8, scales []uint16, apart int, x []float32) bool {
	ok := true
	for b := 0; b < len(x); b += cacheBlock {
		block := x[b : b+cacheBlock]
		var bits uint32 // of the largest magnitude; those of Inf and NaN are larger than any
		for _, v := range block {
			bits = max(bits, math.Float32bits(v)&^(1<<31))
		}
		largest := math.Float32frombits(bits)
		h := tensor.F32ToF16(largest / 127)
		if tensor.F16ToF32(h)*127.5 < largest {
			h++ // float16 is coarse near 0: rather fewer steps than a value cut off
		}
		scales[b/cacheBlock*apart] = h
		ok = ok && (h&0x7fff != halfInf || largest-largest != 0)
		scale := tensor.F16ToF32(h)
		if !(scale > 0 && scale-scale == 0) {
			// The block is 0, or its scale alone says that it is not finite.
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
			const whole = 3 << 22 // float32 have no fractions there: adding it rounds
			q[(b+i)*apart] = int8(math.Float32bits(code + whole))
		}
	}
	return ok
}

// floatKey and floatValue are what store wrote, in x [headDim] and [valueDim].
func (s slot) floatKey(x []float32) []float32   { return s.load(x, slot.key) }
func (s slot) floatValue(x []float32) []float32 { return s.load(x, slot.value) }

func (s slot) load(x []float32, place func(slot) (numbers, scales []byte, apart int)) []float32 {
	numbers, scales, apart := place(s)
	for i := range x {
		switch s.dtype {
		case tensor.F32:
			x[i] = words[float32](numbers)[i*apart]
		case tensor.F16:
			x[i] = tensor.F16ToF32(words[uint16](numbers)[i*apart])
		default:
			x[i] = float32(words[int8](numbers)[i*apart]) * tensor.F16ToF32(words[uint16](scales)[i/cacheBlock*apart])
		}
	}
	return x
}

// A past finds the pages of one sequence in the step at hand.
type past struct {
	*kvPool
	pages []int32
	first int // logical page of pages[0]
}

func (e *executable) past(pool *kvPool, s int32) past {
	table := &e.batch.Tables[pool.state.Group]
	return past{pool, table.Pages[table.Start[s]:table.Start[s+1]], int(table.First[s])}
}

// slot is the place of position pos and key/value head g, in a page that is
// allocated.
func (p *past) slot(pos, g int) slot {
	return slot{p.kvPool, p.kvPool.pages[p.pages[pos/p.pageTokens-p.first]], pos % p.pageTokens, g}
}
