package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An exponential computes e^x by the range reduction of Cody and Waite (Software Manual for the
// Elementary Functions, 1980): x = n ln 2 + r with |r| <= ln(2)/2, e^x = 2^n e^r. e^r is 1 + r +
// r²p(r), where p is the polynomial of degree 4 with the least maximum relative error (found by
// Remez's exchange; 3.1e-9).
//
// The result is within 2 units in the last place, except that results below the normal numbers are
// 0: those take processors about a hundred cycles. e^-Inf is 0, e^Inf is Inf, and NaN stays NaN.
// Both instruction sets give the same bits.
type exponential struct {
	m               *isa
	least, most     operand.Op // arguments below least give 0; arguments above most count as most
	log2e, one      operand.Op
	ln2High, ln2Low operand.Op // ln 2 in two parts; n times the first is exact
	p               [5]operand.Op
	bias            operand.Op // of a float32's exponent; nil if not used
}

// exponential keeps its constants in 11 registers if there are 32, and in memory if there are 16.
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

// number returns v in all lanes.
func (m *isa) number(v float32) operand.Op { return m.word(math.Float32bits(v)) }

// of replaces x by e^x. It uses two more registers.
func (e *exponential) of(x reg.VecVirtual) {
	m := e.m
	n, y := m.vec(), m.vec()
	// If one operand is NaN, both instructions return the operand that comes first here.
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
	// 2^n in two steps: n may exceed the exponents of float32.
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

// below returns a mask without the lanes in which x is below least. NaN is not below.
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

// mustBeRegister returns v, loaded to free if it is in memory.
func (e *exponential) mustBeRegister(v operand.Op, free reg.VecVirtual) operand.Op {
	if r, ok := v.(reg.Register); ok {
		return r
	}
	VMOVUPS(v, free)
	return free
}
