package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector writes the kernels on rows of float32.
func vector() {
	for _, m := range []*isa{avx2, avx512} {
		quantize(m)
		sum(m)
		squares(m)
		scale(m)
		center(m)
		rotateHalves(m)
		rotateNeighbours(m)
		glus(m)
		add(m)
		poison(m)
		maxima(m)
	}
}

// A stretch is a part of a row: as many elements as a register has lanes, or the remaining elements
// of the row.
type stretch struct {
	m    *isa
	i    reg.Register // byte offset of the stretches of this iteration
	disp int          // further offset of this stretch
	mask reg.Register // lanes inside the row; nil for all
}

func (s *stretch) at(row reg.Register) operand.Mem {
	return operand.Mem{Base: row, Index: s.i, Scale: 1, Disp: s.disp}
}

// load loads the stretch of a row, with zeros past its end.
func (s *stretch) load(row reg.Register) reg.VecVirtual {
	v := s.m.vec()
	switch {
	case s.mask == nil:
		VMOVUPS(s.at(row), v)
	case s.m.wide():
		VMOVUPS_Z(s.at(row), s.mask, v)
	default:
		VMASKMOVPS(s.at(row), s.mask, v)
	}
	return v
}

func (s *stretch) store(v reg.VecVirtual, row reg.Register) {
	switch {
	case s.mask == nil:
		VMOVUPS(v, s.at(row))
	case s.m.wide():
		VMOVUPS(v, s.mask, s.at(row))
	default:
		VMASKMOVPS(v, s.mask, s.at(row))
	}
}

// sweep runs body for each stretch of rows of n elements, with unroll stretches per iteration as
// long as there are that many. k numbers the stretches of an iteration.
func (m *isa) sweep(n reg.Register, unroll int, body func(k int, s *stretch)) {
	i, left := GP64(), GP64()
	XORQ(i, i)
	MOVQ(n, left)
	loop := func(label, next string, stretches int) {
		CMPQ(left, operand.U8(stretches*m.lanes))
		JL(operand.LabelRef(next))
		Label(label)
		for k := range stretches {
			body(k, &stretch{m: m, i: i, disp: 4 * m.lanes * k})
		}
		ADDQ(operand.U32(4*m.lanes*stretches), i)
		SUBQ(operand.U8(stretches*m.lanes), left)
		CMPQ(left, operand.U8(stretches*m.lanes))
		JGE(operand.LabelRef(label))
		Label(next)
	}
	if unroll > 1 {
		loop("several", "singles", unroll)
	}
	loop("single", "rest", 1)
	TESTQ(left, left)
	JZ(operand.LabelRef("end"))
	masks, v := GP64(), m.vec()
	LEAQ(table(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), masks)
	NEGQ(left)
	VMOVUPS(operand.Mem{Base: masks, Index: left, Scale: 4, Disp: 64}, v)
	mask := reg.Register(v)
	if m.wide() {
		mask = K()
		VPMOVD2M(v, mask)
	}
	body(0, &stretch{m: m, i: i, mask: mask})
	Label("end")
}

var tables = map[string]operand.Mem{}

// table returns read-only memory with these words.
func table(words ...int32) operand.Mem {
	key := fmt.Sprint(words)
	m, ok := tables[key]
	if !ok {
		m = GLOBL(fmt.Sprintf("table%d", len(tables)), 8|16) // RODATA, NOPTR
		for i, v := range words {
			DATA(4*i, operand.U32(uint32(v)))
		}
		tables[key] = m
	}
	return m
}

// numbers returns a register with these words.
func numbers(like func() reg.VecVirtual, words ...int32) reg.VecVirtual {
	r := like()
	VMOVUPS(table(words...), r)
	return r
}

// permute returns v's words in the given order.
func permute(v, order operand.Op, like func() reg.VecVirtual) reg.VecVirtual {
	r := like()
	VPERMD(v, order, r)
	return r
}

// zeros returns n registers of zeros.
func (m *isa) zeros(n int) []reg.VecVirtual {
	list := make([]reg.VecVirtual, n)
	for i := range list {
		list[i] = m.zero()
	}
	return list
}

// doubles converts the float32 in v's lower and upper half to float64.
func (m *isa) doubles(v reg.VecVirtual) (low, high reg.VecVirtual) {
	low, high = m.vec(), m.vec()
	if m.wide() {
		upper := YMM()
		VEXTRACTF64X4(operand.U8(1), v, upper)
		VCVTPS2PD(v.AsY(), low)
		VCVTPS2PD(upper, high)
		return low, high
	}
	upper := XMM()
	VEXTRACTF128(operand.U8(1), v, upper)
	VCVTPS2PD(v.AsX(), low)
	VCVTPS2PD(upper, high)
	return low, high
}

// singles converts the float64 of low and high to float32.
func (m *isa) singles(low, high reg.VecVirtual) reg.VecVirtual {
	v := m.vec()
	if m.wide() {
		upper := YMM()
		VCVTPD2PS(low, v.AsY())
		VCVTPD2PS(high, upper)
		VINSERTF64X4(operand.U8(1), upper, v, v)
		return v
	}
	upper := XMM()
	VCVTPD2PSY(low, v.AsX())
	VCVTPD2PSY(high, upper)
	VINSERTF128(operand.U8(1), upper, v, v)
	return v
}

// total adds the float64 in the lanes of v and returns the lowest lane.
func (m *isa) total(v reg.VecVirtual) reg.Register {
	y := YMM()
	if m.wide() {
		VEXTRACTF64X4(operand.U8(1), v, y)
		VADDPD(v.AsY(), y, y)
	} else {
		VMOVUPS(v, y)
	}
	x, other := XMM(), XMM()
	VEXTRACTF128(operand.U8(1), y, x)
	VADDPD(y.AsX(), x, x)
	VPERMILPD(operand.U8(1), x, other)
	VADDSD(other, x, x)
	return x
}

// add writes x+z to y.
func add(m *isa) {
	start("add"+m.suffix, "func(y, x, z *float32, n int)", "add"+m.suffix+" writes x+z to y, all of n elements.")
	y, x, z, n := argument("y"), argument("x"), argument("z"), argument("n")
	m.sweep(n, 2, func(_ int, s *stretch) {
		v := s.load(x)
		VADDPS(s.load(z), v, v)
		s.store(v, y)
	})
	VZEROUPPER()
	RET()
}

// poison writes the function that checks whether all values are finite: 0 times infinity or NaN is
// NaN.
func poison(m *isa) {
	start("poison"+m.suffix, "func(x *float32, n int) float32", "poison"+m.suffix+" is the sum of 0*x[i] over i < n: 0, or NaN where a value is not finite.")
	x, n := argument("x"), argument("n")
	zero, sums := m.zero(), m.zeros(4)
	m.sweep(n, 4, func(k int, s *stretch) { VFMADD231PS(s.load(x), zero, sums[k]) })
	VADDPS(sums[1], sums[0], sums[0])
	VADDPS(sums[3], sums[2], sums[2])
	VADDPS(sums[2], sums[0], sums[0])
	Store(m.sum(sums[0]), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// sum adds the float32 in the lanes of v and returns the lowest lane.
func (m *isa) sum(v reg.VecVirtual) reg.Register {
	if m.wide() {
		return sumZMM(v).AsX()
	}
	return sumYMM(v).AsX()
}

// maxima writes the function that computes the maxima of the blocks of a row.
func maxima(m *isa) {
	start("maxima"+m.suffix, "func(dst, x *float32, blocks int) float32",
		"maxima"+m.suffix+" writes the largest of each 64 elements of x, of one block at least, to dst",
		"and returns 0, or NaN where a value is not finite.")
	dst, x, n := argument("dst"), argument("x"), argument("blocks")
	zero, sums := m.zero(), m.zeros(2)
	Label("loop")
	var tops [4]reg.VecVirtual
	for i := range 64 / m.lanes {
		v := m.load(at(x, 4*m.lanes*i))
		VFMADD231PS(v, zero, sums[i%2])
		if i < len(tops) {
			tops[i] = v
		} else {
			VMAXPS(v, tops[i%len(tops)], tops[i%len(tops)])
		}
	}
	VMAXPS(tops[1], tops[0], tops[0])
	VMAXPS(tops[3], tops[2], tops[2])
	VMAXPS(tops[2], tops[0], tops[0])
	y := tops[0]
	if m.wide() {
		y = YMM()
		VEXTRACTF64X4(operand.U8(1), tops[0], y)
		VMAXPS(tops[0].AsY(), y, y)
	}
	top, other := XMM(), XMM()
	VEXTRACTF128(operand.U8(1), y, top)
	VMAXPS(y.AsX(), top, top)
	for _, order := range []uint8{0x4e, 0xb1} {
		VPERMILPS(operand.U8(order), top, other)
		VMAXPS(other, top, top)
	}
	VMOVSS(top, at(dst, 0))
	ADDQ(operand.U8(4), dst)
	ADDQ(operand.U32(256), x)
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	VADDPS(sums[1], sums[0], sums[0])
	Store(m.sum(sums[0]), ReturnIndex(0))
	VZEROUPPER()
	RET()
}
