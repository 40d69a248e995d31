package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An exponential computes e^x by the range reduction of Cody and Waite (Software
// Manual for the Elementary Functions, 1980): x = n ln 2 + r with |r| <= ln(2)/2,
// e^x = 2^n e^r. e^r is 1 + r + r²p(r), p the polynomial of degree 4 whose largest
// relative error is the least (found by Remez's exchange; 3.1e-9).
//
// The result is within 2 units in the last place, but 0 where it would be below the
// normal numbers: these take processors some hundred cycles. e^-Inf is 0, e^Inf is
// Inf, and NaN stays NaN. Both sets of instructions give the same bits.
type exponential struct {
	m               *isa
	least, most     operand.Op // below the first the result is 0, above the other that of it
	log2e, one      operand.Op
	ln2High, ln2Low operand.Op // ln 2 in two parts; n times the first is exact
	p               [5]operand.Op
	bias            operand.Op // of the exponent of a float32; nil where it is not used
}

// exponential holds its constants in 11 registers where there are 32, and in none
// where there are 16.
func (m *isa) exponential() *exponential {
	e := &exponential{
		m:     m,
		least: m.number(-87.3365402), most: m.number(89),
		log2e: m.number(math.Log2E), one: m.number(1),
		ln2High: m.number(0.693359375), ln2Low: m.number(math.Ln2 - 0.693359375),
	}
	for i, c := range [...]float32{0.49999994, 0.166665196, 0.0416683964, 0.00836879667, 0.00138144335} {
		e.p[i] = m.number(c)
	}
	if !m.wide() {
		e.bias = m.word(127)
	}
	return e
}

// number is v in all lanes.
func (m *isa) number(v float32) operand.Op { return m.word(math.Float32bits(v)) }

// of makes e^x of x, in place, with two registers beside it.
func (e *exponential) of(x reg.VecVirtual) {
	m := e.m
	n, y := m.vec(), m.vec()
	// Where one operand is NaN, both instructions give the one written first here.
	VMINPS(x, e.mustBeRegister(e.most, n), x)
	zero := e.below(x)
	VMAXPS(x, e.mustBeRegister(e.least, n), x)
	VMULPS(e.log2e, x, n)
	if m.wide() {
		VRNDSCALEPS(operand.U8(0), n, n)
	} else {
		VROUNDPS(operand.U8(0), n, n)
	}
	VFNMADD231PS(e.ln2High, n, x)
	VFNMADD231PS(e.ln2Low, n, x)
	VMOVAPS(e.p[4], y)
	for i := 3; i >= 0; i-- {
		VFMADD213PS(e.p[i], x, y)
	}
	VFMADD213PS(e.one, x, y)
	VFMADD213PS(e.one, y, x)
	if m.wide() {
		VSCALEFPS_Z(n, x, zero, x)
		return
	}
	// 2^n in two steps: n itself may be no exponent of a float32.
	VCVTPS2DQ(n, n)
	VPSRAD(operand.U8(1), n, y)
	VPSUBD(y, n, n)
	for _, part := range []reg.VecVirtual{y, n} {
		VPADDD(e.bias, part, part)
		VPSLLD(operand.U8(23), part, part)
		VMULPS(part, x, x)
	}
	VANDPS(zero, x, x)
}

// below is a mask without the lanes where x is below the least; NaN is not.
func (e *exponential) below(x reg.VecVirtual) reg.Register {
	const notLess = operand.U8(5)
	if e.m.wide() {
		k := K()
		VCMPPS(notLess, e.least, x, k)
		return k
	}
	v := e.m.vec()
	VCMPPS(notLess, e.least, x, v)
	return v
}

// mustBeRegister is v, loaded to free where it lies in memory.
func (e *exponential) mustBeRegister(v operand.Op, free reg.VecVirtual) operand.Op {
	if r, ok := v.(reg.Register); ok {
		return r
	}
	VMOVUPS(v, free)
	return free
}
