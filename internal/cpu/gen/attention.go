package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scoreStride is the distance between rows of scores or weights, in float32.
const scoreStride = 256 + 16

// A cacheFormat is a format of keys and values in memory.
type cacheFormat struct {
	name string
	size int // bytes per value; 1 means that values share a float16 scale: 32 in Q8, those of a head in F8
}

var (
	q8 = &cacheFormat{"Q8", 1}
	f8 = &cacheFormat{"F8", 1}

	cacheFormats = []*cacheFormat{{"F32", 4}, {"F16", 2}, q8, f8}
)

func (f *cacheFormat) scaled() bool { return f.size == 1 }

// constant returns the register that load needs, or nil.
func (f *cacheFormat) constant(m *isa) reg.VecVirtual {
	if f == f8 {
		return m.quarters(words(0xbfff_bfff)) // all bits of 16-bit words except bit 14
	}
	return nil
}

// load loads a register of values, without their scale.
func (f *cacheFormat) load(m *isa, at operand.Mem, constant reg.VecVirtual) reg.VecVirtual {
	v := m.vec()
	switch {
	case f.size == 4:
		VMOVUPS(at, v)
	case f.size == 2:
		VCVTPH2PS(at, v)
	case f == q8:
		VPMOVSXBD(at, v)
		VCVTDQ2PS(v, v)
	default:
		// The exponent and the mantissa are moved to those of a float16. Its largest bit of the
		// exponent is a copy of the sign, and becomes 0.
		half := reg.VecVirtual(XMM())
		if m.wide() {
			half = YMM()
		}
		VPMOVSXBW(at, half)
		VPSLLW(operand.U8(7), half, half)
		if m.wide() {
			VPANDD(constant.AsY(), half, half)
		} else {
			VPAND(constant.AsX(), half, half)
		}
		VCVTPH2PS(half, v)
	}
	return v
}

// attention writes the kernels of attention.
//
// They prefetch one page ahead into the second-level cache, which handles many more outstanding
// lines than the first-level cache; prefetch into the first-level cache reads memory at half the
// speed.
func attention() {
	for _, m := range []*isa{avx2, avx512} {
		for _, f := range cacheFormats {
			scores(m, f)
			weighted(m, f)
		}
		softWeights(m)
		blend(m)
		scaleRow(m)
		positives(m)
	}
	halve()
}

// parameter returns the memory operand of a parameter.
func parameter(name string) operand.Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

func scores(m *isa, f *cacheFormat) {
	name := "scores" + f.name + m.suffix
	TEXT(name, NOSPLIT, "func(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)")
	Pragma("noescape")
	Doc(name+" sets score [rows, n] to the products of queries and keys.",
		"q is [dim, rows], its rows qStride bytes apart, k is [dim, n], its rows stride bytes apart; sums run over dim in ascending order.",
		"n is rounded up to whole registers, in what is read and written. What lies from next on is fetched ahead.")
	s := &scoring{m: m, f: f,
		score: Load(Param("score"), GP64()), q: Load(Param("q"), GP64()), rows: Load(Param("rows"), GP64()),
		next: Load(Param("next"), GP64()), step: GP64(),
		k: GP64(), scales: GP64(), at: GP64(), left: GP64(), zero: m.zero(), constant: f.constant(m),
	}
	MOVQ(operand.U32(1), s.step)
	first := 4
	if m.wide() {
		first = 8
	}
	for rows := first; rows > 0; rows /= 2 {
		s.block(rows)
	}
	VZEROUPPER()
	RET()
}

// A scoring is the state of the loops over rows and positions.
type scoring struct {
	m *isa
	f *cacheFormat

	score, q, rows reg.Register // from the block's first row on
	next, step     reg.Register // step is 1 while the first block fetches ahead, then 0
	k, scales, at  reg.Register // from the block's first position on
	left           reg.Register // number of positions
	zero, constant reg.VecVirtual
}

// block computes all blocks of that many rows.
func (s *scoring) block(rows int) {
	label := func(what string) string { return fmt.Sprintf("%s%d", what, rows) }
	Label(label("rows"))
	CMPQ(s.rows, operand.U8(rows))
	JLT(operand.LabelRef(label("fewer")))
	Load(Param("k"), s.k)
	if s.f.scaled() {
		Load(Param("scales"), s.scales)
	}
	Load(Param("n"), s.left)
	MOVQ(s.score, s.at)
	Label(label("positions"))
	CMPQ(s.left, operand.U8(s.m.lanes))
	JLE(operand.LabelRef(label("one")))
	s.sum(rows, 2, label)
	JG(operand.LabelRef(label("positions")))
	JMP(operand.LabelRef(label("done")))
	Label(label("one"))
	s.sum(rows, 1, label)
	Label(label("done"))
	XORQ(s.step, s.step)
	ADDQ(operand.U32(4*rows), s.q)
	ADDQ(operand.U32(4*scoreStride*rows), s.score)
	SUBQ(operand.U32(rows), s.rows)
	JMP(operand.LabelRef(label("rows")))
	Label(label("fewer"))
}

// sum computes the scores of some rows and some registers of positions, advances by as many
// positions, and sets the flags by the number left.
func (s *scoring) sum(rows, vectors int, label func(string) string) {
	m, f := s.m, s.f
	width := m.lanes * f.size
	acc := make([]reg.VecVirtual, rows*vectors)
	for i := range acc {
		acc[i] = m.vec()
		VMOVAPS(s.zero, acc[i])
	}
	q, k, n, scales := GP64(), GP64(), GP64(), GP64()
	MOVQ(s.q, q)
	MOVQ(s.k, k)
	Load(Param("dim"), n)
	if f.scaled() {
		MOVQ(s.scales, scales)
	}
	loop, scale := label(fmt.Sprintf("dim%d_", vectors)), label(fmt.Sprintf("scale%d_", vectors))
	scaling := make([]reg.VecVirtual, vectors)
	Label(scale)
	loadScales := func() {
		for v := range scaling {
			scaling[v] = m.vec()
			VCVTPH2PS(operand.Mem{Base: scales, Disp: 2 * m.lanes * v}, scaling[v])
		}
	}
	if f == q8 {
		loadScales()
		ADDQ(parameter("stride"), scales)
		ADDQ(parameter("stride"), scales)
	}
	Label(loop)
	key := make([]reg.VecVirtual, vectors)
	for v := range key {
		key[v] = f.load(m, operand.Mem{Base: k, Disp: v * width}, s.constant)
		if f == q8 {
			VMULPS(scaling[v], key[v], key[v])
		}
	}
	for line := 0; line < vectors*width; line += 64 {
		PREFETCHT1(operand.Mem{Base: s.next, Disp: line})
	}
	for r := range rows {
		x := m.vec()
		VBROADCASTSS(operand.Mem{Base: q, Disp: 4 * r}, x)
		for v := range key {
			VFMADD231PS(key[v], x, acc[r*vectors+v])
		}
	}
	ADDQ(parameter("stride"), k)
	ADDQ(parameter("qStride"), q)
	s.fetched(vectors * width)
	DECQ(n)
	if f == q8 {
		TESTQ(operand.U32(31), n)
		JNZ(operand.LabelRef(loop))
		TESTQ(n, n)
		JNZ(operand.LabelRef(scale))
	} else {
		JNZ(operand.LabelRef(loop))
	}
	if f == f8 {
		loadScales()
		for i, a := range acc {
			VMULPS(scaling[i%vectors], a, a)
		}
	}
	for i, a := range acc {
		VMOVUPS(a, operand.Mem{Base: s.at, Disp: 4 * (i/vectors*scoreStride + i%vectors*m.lanes)})
	}
	ADDQ(operand.U32(4*m.lanes*vectors), s.at)
	ADDQ(operand.U32(width*vectors), s.k)
	if f.scaled() {
		ADDQ(operand.U32(2*m.lanes*vectors), s.scales)
	}
	SUBQ(operand.U32(m.lanes*vectors), s.left)
}

// fetched advances the prefetch address.
func (s *scoring) fetched(n int) {
	by := GP64()
	IMUL3Q(operand.U32(n), s.step, by)
	ADDQ(by, s.next)
}

func weighted(m *isa, f *cacheFormat) {
	name := "weighted" + f.name + m.suffix
	TEXT(name, NOSPLIT, "func(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)")
	Pragma("noescape")
	Doc(name+" adds to sum [rows, dim] the n values v [n, dim] by their weights [rows, n], in ascending order.",
		"Rows of v lie stride bytes apart, those of sum sumStride bytes; dim is rounded up to whole registers, in what is read and written.",
		"What lies from next on is fetched ahead.")
	w := &weighting{m: m, f: f,
		sum: Load(Param("sum"), GP64()), weight: Load(Param("weight"), GP64()), rows: Load(Param("rows"), GP64()),
		next: Load(Param("next"), GP64()), step: GP64(),
		column: GP64(), constant: f.constant(m),
	}
	MOVQ(operand.U32(1), w.step)
	for rows := 4; rows > 0; rows /= 2 {
		w.block(rows)
	}
	VZEROUPPER()
	RET()
}

// A weighting is the state of the loops over rows and columns.
type weighting struct {
	m *isa
	f *cacheFormat

	sum, weight, rows reg.Register // from the block's first row on
	next, step        reg.Register
	column            reg.Register // first column of a block of v
	constant          reg.VecVirtual
}

// block computes all blocks of that many rows.
func (w *weighting) block(rows int) {
	most := 2
	if w.m.wide() {
		most = 4
	}
	label := func(what string) string { return fmt.Sprintf("%s%d", what, rows) }
	Label(label("rows"))
	CMPQ(w.rows, operand.U8(rows))
	JLT(operand.LabelRef(label("fewer")))
	XORQ(w.column, w.column)
	for vectors := most; vectors > 0; vectors /= 2 {
		at := func(what string) string { return fmt.Sprintf("%s%d_%d", what, rows, vectors) }
		Label(at("columns"))
		left := GP64()
		Load(Param("dim"), left)
		SUBQ(w.column, left)
		CMPQ(left, operand.U8((vectors-1)*w.m.lanes))
		JLE(operand.LabelRef(at("narrower")))
		w.add(rows, vectors, at("position"))
		JMP(operand.LabelRef(at("columns")))
		Label(at("narrower"))
	}
	XORQ(w.step, w.step)
	ADDQ(operand.U32(4*scoreStride*rows), w.weight)
	stride := GP64()
	Load(Param("sumStride"), stride)
	IMUL3Q(operand.U32(rows), stride, stride)
	ADDQ(stride, w.sum)
	SUBQ(operand.U32(rows), w.rows)
	JMP(operand.LabelRef(label("rows")))
	Label(label("fewer"))
}

// add adds all positions to some rows and some registers of columns, and advances by as many
// columns.
func (w *weighting) add(rows, vectors int, loop string) {
	m, f := w.m, w.f
	width := m.lanes * f.size
	acc := make([]reg.VecVirtual, rows*vectors)
	each := func(do func(a reg.VecVirtual, at operand.Mem)) {
		row := GP64()
		MOVQ(w.sum, row)
		for r := range rows {
			for v := range vectors {
				do(acc[r*vectors+v], operand.Mem{Base: row, Index: w.column, Scale: 4, Disp: 4 * m.lanes * v})
			}
			if r+1 < rows {
				ADDQ(parameter("sumStride"), row)
			}
		}
	}
	for i := range acc {
		acc[i] = m.vec()
	}
	each(func(a reg.VecVirtual, at operand.Mem) { VMOVUPS(at, a) })
	weight, v, n, scales := GP64(), GP64(), GP64(), GP64()
	MOVQ(w.weight, weight)
	Load(Param("v"), v)
	Load(Param("n"), n)
	LEAQ(operand.Mem{Base: v, Index: w.column, Scale: uint8(f.size)}, v)
	if f == f8 {
		Load(Param("scales"), scales)
	}
	if f == q8 {
		block := GP64()
		MOVQ(w.column, block)
		SHRQ(operand.U8(5), block)
		Load(Param("scales"), scales)
		LEAQ(operand.Mem{Base: scales, Index: block, Scale: 2}, scales)
	}
	Label(loop)
	value := make([]reg.VecVirtual, vectors)
	var scale reg.VecVirtual
	for i := range value {
		if f == q8 && i*m.lanes%32 == 0 || f == f8 && i == 0 {
			x, y := XMM(), YMM()
			scale = m.vec()
			if m.wide() {
				VPBROADCASTW(operand.Mem{Base: scales, Disp: i * m.lanes / 32 * 2}, y)
				VCVTPH2PS(y, scale)
			} else {
				VPBROADCASTW(operand.Mem{Base: scales, Disp: i * m.lanes / 32 * 2}, x)
				VCVTPH2PS(x, scale)
			}
		}
		value[i] = f.load(m, operand.Mem{Base: v, Disp: i * width}, w.constant)
		if f.scaled() {
			VMULPS(scale, value[i], value[i])
		}
	}
	for line := 0; line < vectors*width; line += 64 {
		PREFETCHT1(operand.Mem{Base: w.next, Disp: line})
	}
	for r := range rows {
		x := m.vec()
		VBROADCASTSS(operand.Mem{Base: weight, Disp: 4 * scoreStride * r}, x)
		for i := range value {
			VFMADD231PS(value[i], x, acc[r*vectors+i])
		}
	}
	ADDQ(operand.U8(4), weight)
	ADDQ(parameter("stride"), v)
	if f == f8 {
		ADDQ(operand.U8(2), scales)
	}
	if f == q8 {
		by := GP64()
		Load(Param("stride"), by)
		SHRQ(operand.U8(4), by) // of the scales: 2 bytes per 32
		ADDQ(by, scales)
	}
	by := GP64()
	IMUL3Q(operand.U32(vectors*width), w.step, by)
	ADDQ(by, w.next)
	DECQ(n)
	JNZ(operand.LabelRef(loop))
	each(func(a reg.VecVirtual, at operand.Mem) { VMOVUPS(a, at) })
	ADDQ(operand.U32(vectors*m.lanes), w.column)
}

// across combines the lanes of v, in place, into its first lane: halves with halves.
func (m *isa) across(v reg.VecVirtual, combine func(a, b, to operand.Op)) {
	if m.wide() {
		upper := YMM()
		VEXTRACTF64X4(operand.U8(1), v, upper)
		combine(upper, v.AsY(), v.AsY())
	}
	x, y := v.AsX(), XMM()
	if m.wide() {
		VEXTRACTF32X4(operand.U8(1), v.AsY(), y)
	} else {
		VEXTRACTF128(operand.U8(1), v.AsY(), y)
	}
	combine(y, x, x)
	VPERMILPS(operand.U8(0x0e), x, y)
	combine(y, x, x)
	VPERMILPS(operand.U8(0x01), x, y)
	combine(y, x, x)
}

func softWeights(m *isa) {
	name := "softWeights" + m.suffix
	TEXT(name, NOSPLIT, "func(score *float32, n, rows int, top, total *float32)")
	Pragma("noescape")
	Doc(name+" replaces each of rows rows of n scores by exp(score - top), top being the row's largest,",
		"and sets total to their sum. n is a positive multiple of 16.")
	score, rows := Load(Param("score"), GP64()), Load(Param("rows"), GP64())
	top, total := Load(Param("top"), GP64()), Load(Param("total"), GP64())
	e := m.exponential()
	at, n := GP64(), GP64()
	begin := func() {
		MOVQ(score, at)
		Load(Param("n"), n)
	}
	next := func(loop string) {
		ADDQ(operand.U32(4*m.lanes), at)
		SUBQ(operand.U32(m.lanes), n)
		JNZ(operand.LabelRef(loop))
	}
	largest, sum := m.vec(), m.vec()

	Label("rows")
	begin()
	VBROADCASTSS(m.lowest(), largest)
	Label("largest")
	VMAXPS(operand.Mem{Base: at}, largest, largest)
	next("largest")
	m.across(largest, func(a, b, to operand.Op) { VMAXPS(a, b, to) })
	VMOVSS(largest.AsX(), operand.Mem{Base: top})
	VBROADCASTSS(largest.AsX(), largest)

	begin()
	if m.wide() {
		VPXORD(sum, sum, sum)
	} else {
		VPXOR(sum, sum, sum)
	}
	Label("weights")
	x := m.load(operand.Mem{Base: at})
	VSUBPS(largest, x, x)
	e.of(x)
	VMOVUPS(x, operand.Mem{Base: at})
	VADDPS(x, sum, sum)
	next("weights")
	m.across(sum, func(a, b, to operand.Op) { VADDPS(a, b, to) })
	VMOVSS(sum.AsX(), operand.Mem{Base: total})

	ADDQ(operand.U32(4*scoreStride), score)
	ADDQ(operand.U8(4), top)
	ADDQ(operand.U8(4), total)
	DECQ(rows)
	JNZ(operand.LabelRef("rows"))
	VZEROUPPER()
	RET()
}

// lowest returns -Inf in memory.
func (m *isa) lowest() operand.Mem {
	v := math.Float32bits(float32(math.Inf(-1)))
	var p [16]byte
	for i := range p {
		p[i] = byte(v >> (i % 4 * 8))
	}
	return pattern(p)
}

func blend(m *isa) {
	name := "blend" + m.suffix
	TEXT(name, NOSPLIT, "func(y, x *float32, n int, a, b float32)")
	Pragma("noescape")
	Doc(name + " sets y [n] to y a + x b. n is a positive multiple of 16.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	a, b := m.vec(), m.vec()
	VBROADCASTSS(parameter("a"), a)
	VBROADCASTSS(parameter("b"), b)
	Label("loop")
	v := m.vec()
	VMULPS(operand.Mem{Base: y}, a, v)
	VFMADD231PS(operand.Mem{Base: x}, b, v)
	VMOVUPS(v, operand.Mem{Base: y})
	ADDQ(operand.U32(4*m.lanes), x)
	ADDQ(operand.U32(4*m.lanes), y)
	SUBQ(operand.U32(m.lanes), n)
	JNZ(operand.LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func scaleRow(m *isa) {
	name := "scaleRow" + m.suffix
	TEXT(name, NOSPLIT, "func(y, x *float32, n int, a float32)")
	Pragma("noescape")
	Doc(name + " sets y [n] to x a.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	a := m.vec()
	VBROADCASTSS(parameter("a"), a)
	Label("loop")
	SUBQ(operand.U32(m.lanes), n)
	JLT(operand.LabelRef("tail"))
	v := m.vec()
	VMULPS(operand.Mem{Base: x}, a, v)
	VMOVUPS(v, operand.Mem{Base: y})
	ADDQ(operand.U32(4*m.lanes), x)
	ADDQ(operand.U32(4*m.lanes), y)
	JMP(operand.LabelRef("loop"))
	Label("tail")
	ADDQ(operand.U32(m.lanes), n)
	JZ(operand.LabelRef("done"))
	Label("single")
	s := XMM()
	VMULSS(operand.Mem{Base: x}, a.AsX(), s)
	VMOVSS(s, operand.Mem{Base: y})
	ADDQ(operand.U8(4), x)
	ADDQ(operand.U8(4), y)
	DECQ(n)
	JNZ(operand.LabelRef("single"))
	Label("done")
	VZEROUPPER()
	RET()
}

// halve has no variant with wider registers: its result is scattered afterwards.
func halve() {
	TEXT("halveAVX2", NOSPLIT, "func(y *uint16, x *float32, n int)")
	Pragma("noescape")
	Doc("halveAVX2 sets y [n] to x as float16, rounded to the nearest, to even where two are.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	Label("loop")
	SUBQ(operand.U8(8), n)
	JLT(operand.LabelRef("tail"))
	v := YMM()
	VMOVUPS(operand.Mem{Base: x}, v)
	VCVTPS2PH(operand.U8(0), v, operand.Mem{Base: y})
	ADDQ(operand.U8(32), x)
	ADDQ(operand.U8(16), y)
	JMP(operand.LabelRef("loop"))
	Label("tail")
	ADDQ(operand.U8(8), n)
	JZ(operand.LabelRef("done"))
	Label("single")
	s, h := XMM(), GP32()
	VMOVSS(operand.Mem{Base: x}, s)
	VCVTPS2PH(operand.U8(0), s, s)
	VMOVD(s, h)
	MOVW(h.As16(), operand.Mem{Base: y})
	ADDQ(operand.U8(4), x)
	ADDQ(operand.U8(2), y)
	DECQ(n)
	JNZ(operand.LabelRef("single"))
	Label("done")
	VZEROUPPER()
	RET()
}

func positives(m *isa) {
	name := "positives" + m.suffix
	TEXT(name, NOSPLIT, "func(sum, score, weight *float32, n, rows int)")
	Pragma("noescape")
	Doc(name+" sets sum [n] to the sum over rows, in ascending order, of the positive part of score [rows, n] times weight [rows].",
		"n is rounded up to whole registers, in what is read and written. NaN stays NaN.")
	sum, left := Load(Param("sum"), GP64()), GP64()
	score := Load(Param("score"), GP64())
	Load(Param("n"), left)
	zero := m.zero()
	block := func(vectors int, again string) {
		acc := make([]reg.VecVirtual, vectors)
		for i := range acc {
			acc[i] = m.vec()
			VMOVAPS(zero, acc[i])
		}
		at, weight, rows := GP64(), GP64(), GP64()
		MOVQ(score, at)
		Load(Param("weight"), weight)
		Load(Param("rows"), rows)
		loop := fmt.Sprintf("row%d", vectors)
		Label(loop)
		w := m.vec()
		VBROADCASTSS(operand.Mem{Base: weight}, w)
		for i, a := range acc {
			v := m.vec()
			VMAXPS(operand.Mem{Base: at, Disp: 4 * m.lanes * i}, zero, v) // of NaN it is the operand in memory
			VFMADD231PS(v, w, a)
		}
		ADDQ(operand.U32(4*scoreStride), at)
		ADDQ(operand.U8(4), weight)
		DECQ(rows)
		JNZ(operand.LabelRef(loop))
		for i, a := range acc {
			VMOVUPS(a, operand.Mem{Base: sum, Disp: 4 * m.lanes * i})
		}
		ADDQ(operand.U32(4*m.lanes*vectors), sum)
		ADDQ(operand.U32(4*m.lanes*vectors), score)
		SUBQ(operand.U32(m.lanes*vectors), left)
		JMP(operand.LabelRef(again))
	}
	Label("four")
	CMPQ(left, operand.U8(3*m.lanes))
	JLE(operand.LabelRef("one"))
	block(4, "four")
	Label("one")
	CMPQ(left, operand.U8(0))
	JLE(operand.LabelRef("done"))
	block(1, "one")
	Label("done")
	VZEROUPPER()
	RET()
}
