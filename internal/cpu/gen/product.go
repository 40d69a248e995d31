package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in a record's block, as defined in package cpu.
const (
	recordD     = 32
	recordN32   = 36
	recordM32   = 40
	recordN16   = 48
	recordM16   = 56
	recordBlock = 64
)

// Prefetch distances of words of weights in bytes: to the second-level cache and to the first-level
// cache.
const (
	farBytes  = 12 << 10
	nearBytes = 3 << 10
)

// An env is the state of generating a product of interleaved weights and the records of some
// tokens.
type env struct {
	*isa
	*format
	tokens int
	sides  int // number of groups computed at a time, which share loads of records
	side   int // the current one

	words, heads reg.Register // of the current block
	stride       reg.Register // between groups of weights
	x            [4]reg.Register
	xStride      reg.Register // between records

	columns [2]map[int]reg.VecVirtual    // by side and place in a block: loaded words of the current step
	kept    [2]map[string]reg.VecVirtual // by side: values that several scales of the block share
	bias    int                          // added to signed values
}

// quantized writes the kernels for products of quantized weights and records.
func quantized() {
	for _, m := range []*isa{avx512, avx2} {
		interleave(m)
	}
	for _, f := range formats {
		for _, m := range []*isa{avx512, avx2} {
			for _, w := range m.widths(f) {
				product(m, f, w.groups, w.tokens)
			}
		}
	}
}

// A width is the numbers of groups and tokens that a kernel multiplies at a time.
type width struct{ tokens, groups int }

// widths returns the widths of a format's kernels, widest first.
func (m *isa) widths(f *format) []width {
	switch {
	case !m.wide():
		return []width{{4, 1}, {2, 1}, {1, 1}}
	case f.BlockLen == 32:
		return []width{{12, 2}, {8, 1}, {4, 1}, {2, 1}, {1, 1}}
	}
	// The code for two groups would exceed the first-level cache.
	return []width{{12, 1}, {8, 1}, {4, 1}, {2, 1}, {1, 1}}
}

// product writes the function that multiplies weights of a format, sides groups at a time, with the
// records of tokens tokens.
func product(m *isa, f *format, sides, tokens int) {
	name := fmt.Sprintf("product%sx%d%s", f.Name, tokens, m.suffix)
	TEXT(name, NOSPLIT, "func(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)")
	Pragma("noescape")
	Doc(name + " adds to totals the products of a number of blocks of groups of weights with records, xStride bytes apart.")
	e := &env{isa: m, format: f, tokens: tokens, sides: sides, words: argument("words"), heads: argument("heads"), stride: argument("stride")}
	if f.signed && m.wide() { // VPDPBUSD's left factor is unsigned
		e.bias = 128
		if f.Offset > 0 && tokens <= f.sub/4 {
			e.bias = f.Offset // this costs work per token; the alternative costs work per group
		}
	}
	m.hoist(e.constants()...)
	blocks, groups, totals, totalsStride := argument("blocks"), argument("groups"), argument("totals"), argument("totalsStride")
	wordBytes, headBytes := 4*m.lanes*((f.BlockBytes-f.head.bytes())/4), m.lanes*f.head.bytes()
	skip := func(size int) reg.Register { // from the end of the blocks to the next group
		to := GP64()
		IMUL3Q(operand.I32(-size), blocks, to)
		for range sides {
			ADDQ(e.stride, to)
		}
		return to
	}
	skipWords, skipHeads := skip(wordBytes), skip(headBytes)
	if tokens > 1 {
		e.xStride = argument("xStride")
	}
	place := func(side, t int) operand.Mem {
		a := operand.Mem{Base: totals, Disp: 4 * m.lanes * t}
		if side > 0 {
			a.Index, a.Scale = totalsStride, 1
		}
		return a
	}
	Label("group")
	e.x[0] = argument("x")
	for i := 1; 3*i < tokens; i++ {
		e.x[i] = GP64()
		LEAQ(operand.Mem{Base: e.xStride, Index: e.xStride, Scale: 2}, e.x[i])
		ADDQ(e.x[i-1], e.x[i])
	}
	blocks = argument("blocks")
	var kept []reg.VecVirtual // the totals, if there are enough registers
	if m.wide() && tokens*sides <= 12 || tokens <= 2 {
		for side := range sides {
			for t := range tokens {
				kept = append(kept, m.load(place(side, t)))
			}
		}
	}
	Label("block")
	e.block(func(side, t int, add func(total reg.VecVirtual)) {
		if kept != nil {
			add(kept[side*tokens+t])
			return
		}
		total := m.load(place(side, t))
		add(total)
		VMOVUPS(total, place(side, t))
	})
	ADDQ(operand.U32(wordBytes), e.words)
	ADDQ(operand.U32(headBytes), e.heads)
	for i := 0; 3*i < tokens; i++ {
		ADDQ(operand.U32(f.BlockLen/32*recordBlock), e.x[i])
	}
	DECQ(blocks)
	JNZ(operand.LabelRef("block"))
	for i, v := range kept {
		VMOVUPS(v, place(i/tokens, i%tokens))
	}
	for range sides {
		ADDQ(totalsStride, totals)
	}
	ADDQ(skipWords, e.words)
	ADDQ(skipHeads, e.heads)
	SUBQ(operand.U8(sides), groups)
	JNZ(operand.LabelRef("group"))
	VZEROUPPER()
	RET()
}

// constants returns the patterns that the format's groups use often, if there are many registers.
func (e *env) constants() (all [][16]byte) {
	if !e.wide() {
		return nil
	}
	for _, v := range e.masks() {
		all = append(all, words(uint32(v)*0x01010101))
	}
	if e.Table != nil {
		all = append(all, e.stands())
	}
	return all
}

// stands returns the format's table in the form that groups need.
func (e *env) stands() (p [16]byte) {
	for i, n := range e.Table {
		p[i] = byte(int(n) + e.bias)
	}
	return p
}

// ahead is called for each part of a block's work and prefetches: as many words as the block has,
// some distance ahead, and the heads of the same block in the next group. The prefetches are spread
// over the work because the number of outstanding cache lines is limited.
func (e *env) ahead(part, parts int) {
	lines := (e.BlockBytes - e.head.bytes()) * e.lanes / 64
	for i := lines * part / parts; i < lines*(part+1)/parts; i++ {
		for e.side = range e.sides {
			PREFETCHT1(e.beside(e.words, farBytes+64*i))
			PREFETCHT0(e.beside(e.words, nearBytes+64*i))
		}
	}
	if part == 0 {
		PREFETCHT1(operand.Mem{Base: e.heads, Index: e.stride, Scale: uint8(e.sides)})
	}
}

// block multiplies one block, a few pieces at a time. A piece is the values that share a scale.
// There are as many sums as registers, and the values of several pieces often come from the same
// words.
func (e *env) block(total func(side, t int, add func(total reg.VecVirtual))) {
	forget := func() { e.kept = [2]map[string]reg.VecVirtual{{}, {}} }
	forget()
	pieces := e.BlockLen / e.sub
	together := min(pieces, max(1, e.sums()/e.tokens/e.sides))
	part := 0
	for first := 0; first < pieces; first += together {
		all := make([]sums, together*e.tokens*e.sides)
		of := func(i, t, side int) *sums { return &all[(i*e.tokens+t)*e.sides+side] }
		for step := range e.sub / 4 {
			e.columns = [2]map[int]reg.VecVirtual{{}, {}}
			for i := range together {
				group := (first+i)*e.sub/4 + step
				var w [2]reg.VecVirtual
				for e.side = range e.sides {
					w[e.side] = e.group(group)
				}
				size := w[0]
				if e.signed && !e.wide() {
					size = e.vec()
					VPABSB(w[0], size)
				}
				for t := range e.tokens {
					if e.wide() {
						for side := range e.sides {
							if s := of(i, t, side); s.words == nil {
								s.words = e.begin(t, first+i)
							}
						}
					}
					switch x := e.record(t, 4*group).Offset(4 * group % 32); {
					case !e.wide():
						e.products(of(i, t, 0), w[0], size, x)
					case e.sides == 1:
						VPDPBUSD_BCST(x, w[0], of(i, t, 0).words)
					default:
						v := e.everywhere(x)
						for side := range e.sides {
							VPDPBUSD(v, w[side], of(i, t, side).words)
						}
					}
				}
				e.ahead(part, e.BlockLen/4)
				part++
			}
		}
		for i := range together {
			for e.side = range e.sides {
				scale, low := e.scale(e, first+i)
				if e.tight() {
					forget()
				}
				if n := e.raisedBy(first + i); n > 0 {
					VMULPS(e.number(1/float32(int(1)<<n)), scale, scale)
				}
				for t := range e.tokens {
					s := of(i, t, e.side)
					e.flush(s)
					total(e.side, t, func(v reg.VecVirtual) { e.add(v, s.words, t, first+i, scale, low) })
				}
			}
		}
	}
}

// sums returns the number of sums in registers.
func (e *env) sums() int {
	switch {
	case !e.wide():
		return 4
	case e.tokens > 8:
		return e.tokens * e.sides
	}
	return 16
}

// tight reports whether no registers are left for other values.
func (e *env) tight() bool { return !e.wide() || e.tokens > 4 }

// record returns the block of token t's record that contains a value.
func (e *env) record(t, value int) operand.Mem {
	a := operand.Mem{Base: e.x[t/3], Disp: value / 32 * recordBlock}
	if t%3 > 0 {
		a.Index, a.Scale = e.xStride, uint8(t%3)
	}
	return a
}

// raisedBy returns the power of two by which the values of a piece are too large.
func (e *env) raisedBy(piece int) int {
	if !e.raises() || !e.wide() {
		return 0
	}
	_, up := e.Planes[0].Place(piece * e.sub)
	return up
}

// begin starts the integer sums of a piece with the correction for the bias.
func (e *env) begin(t, piece int) reg.VecVirtual {
	if e.bias == 0 {
		return e.zero()
	}
	v := e.piece(t, piece, recordN32, recordN16)
	if e.bias == 128 {
		return e.everywhere(v)
	}
	sums := e.vec()
	VPSRAD_BCST(operand.U8(bits.TrailingZeros(128/uint(e.bias))), v, sums)
	return sums
}

// piece returns the entry of the record for a piece of 32 or 16 values.
func (e *env) piece(t, piece, for32, for16 int) operand.Mem {
	value := piece * e.sub
	if e.sub == 16 {
		return e.record(t, value).Offset(for16 + 4*(value%32/16))
	}
	return e.record(t, value).Offset(for32)
}

// add adds a piece's scaled integer sums to total, and the minimum's share if there is a minimum.
func (e *env) add(total, sums reg.VecVirtual, t, piece int, scale, low reg.VecVirtual) {
	d, m := e.record(t, piece*e.sub).Offset(recordD), e.piece(t, piece, recordM32, recordM16)
	f := e.vec()
	VCVTDQ2PS(sums, sums)
	if e.wide() {
		VMULPS_BCST(d, scale, f)
	} else {
		VBROADCASTSS(d, f)
		VMULPS(f, scale, f)
	}
	VFMADD231PS(f, sums, total)
	if e.signed {
		return
	}
	if e.wide() {
		VFMADD231PS_BCST(m, low, total)
		return
	}
	f = e.vec()
	VBROADCASTSS(m, f)
	VFMADD231PS(low, f, total)
}

// Sums are the integer sums of products of a piece and a token, by row.
type sums struct {
	words reg.VecVirtual
	pairs reg.VecVirtual // without VPDPBUSD: 16-bit sums not yet added to the words
	added int            // number of products in each pair
}

// products adds the four products of each lane's bytes to s without VPDPBUSD. It multiplies
// magnitudes by values with the other's sign, two products per 16 bits, and adds as many of these
// as fit in 16 bits.
func (e *env) products(s *sums, w, size reg.VecVirtual, x operand.Mem) {
	v := e.everywhere(x)
	if e.signed {
		VPSIGNB(w, v, v)
	}
	VPMADDUBSW(v, size, v)
	if s.added += 2; s.pairs == nil {
		s.pairs = v
	} else {
		VPADDW(v, s.pairs, s.pairs)
	}
	if (s.added+2)*e.most()*127 > 1<<15-1 {
		e.flush(s)
	}
}

// flush adds the pairs to the words.
func (e *env) flush(s *sums) {
	if s.pairs == nil {
		return
	}
	VPMADDWD(e.word(0x00010001), s.pairs, s.pairs)
	if s.words == nil {
		s.words = s.pairs
	} else {
		VPADDD(s.pairs, s.words, s.words)
	}
	s.pairs, s.added = nil, 0
}

// column returns the words of all rows at a place in a block of the format.
func (e *env) column(at int) reg.VecVirtual {
	v, ok := e.columns[e.side][at]
	if !ok {
		v = e.load(e.place(at))
		e.columns[e.side][at] = v
	}
	return v
}

// place returns the memory of the words of all rows at a place in a block of the format.
func (e *env) place(at int) operand.Mem {
	if at >= e.head.at+e.head.bytes() {
		at -= e.head.bytes()
	}
	return e.beside(e.words, at*e.lanes)
}

// half returns number i of the heads, a float16.
func (e *env) half(i int) reg.VecVirtual {
	v := e.vec()
	VCVTPH2PS(e.headAt(i), v)
	return v
}

func (e *env) headAt(i int) operand.Mem {
	return e.beside(e.heads, i*e.lanes*e.head.width)
}

// beside returns the memory at p for the current side.
func (e *env) beside(p reg.Register, disp int) operand.Mem {
	a := operand.Mem{Base: p, Disp: disp}
	if e.side > 0 {
		a.Index, a.Scale = e.stride, 1
	}
	return a
}

// keep returns the result of f, computed once for all scales of the block if there are registers.
func (e *env) keep(name string, f func() reg.VecVirtual) reg.VecVirtual {
	v, ok := e.kept[e.side][name]
	if !ok {
		v = f()
		e.kept[e.side][name] = v
	}
	return v
}
