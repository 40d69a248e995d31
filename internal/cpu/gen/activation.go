package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// glus writes a function for each activation of a GLU's gate.
func glus(m *isa) {
	m.glu("SiLU", func(a *activation, g reg.VecVirtual) {
		part, whole := a.logistic(g)
		VMULPS(part, g, g)
		VDIVPS(whole, g, g)
	})
	m.glu("GELU", func(a *activation, g reg.VecVirtual) { a.gelu(g) })
	m.glu("GELUTanh", func(a *activation, g reg.VecVirtual) {
		// (1+tanh(u))/2 is the logistic function of 2u.
		u := m.mul(g, g)
		const slope = 1.59576912160573071 // 2*sqrt(2/pi)
		v := m.vec()
		VMOVUPS(a.number(slope), v)
		VFMADD132PS(a.number(slope*0.044715), v, u)
		VMULPS(g, u, u)
		part, whole := a.logistic(u)
		VMULPS(part, g, g)
		VDIVPS(whole, g, g)
	})
	m.glu("ReLU", func(_ *activation, g reg.VecVirtual) { VMAXPS(g, m.zero(), g) }) // keeps NaN
	m.glu("ReLUSquared", func(_ *activation, g reg.VecVirtual) {
		VMAXPS(g, m.zero(), g)
		VMULPS(g, g, g)
	})
	m.glu("Sigmoid", func(a *activation, g reg.VecVirtual) {
		part, whole := a.logistic(g)
		VDIVPS(whole, part, g)
	})
}

// glu writes the function of an activation; of computes the activation in place.
func (m *isa) glu(name string, of func(a *activation, g reg.VecVirtual)) {
	name = "glu" + name + m.suffix
	start(name, "func(y, gate, up *float32, n int)", name+" writes activation(gate)*up to y, all of n elements.")
	y, gate, up, n := argument("y"), argument("gate"), argument("up"), argument("n")
	a := &activation{m: m}
	if name != "gluReLU"+m.suffix && name != "gluReLUSquared"+m.suffix {
		a.exp = m.exponential()
	}
	m.sweep(n, 2, func(_ int, s *stretch) {
		g := s.load(gate)
		of(a, g)
		VMULPS(s.load(up), g, g)
		s.store(g, y)
	})
	VZEROUPPER()
	RET()
}

// An activation has the parts of activation functions.
type activation struct {
	m   *isa
	exp *exponential
}

// number returns v in all lanes, in memory: the registers are needed for the exponential.
func (a *activation) number(v float64) operand.Op { return a.word(math.Float32bits(float32(v))) }

func (a *activation) word(v uint32) operand.Op {
	bits := int32(v)
	if a.m.wide() {
		return table(bits, bits, bits, bits, bits, bits, bits, bits, bits, bits, bits, bits, bits, bits, bits, bits)
	}
	return table(bits, bits, bits, bits, bits, bits, bits, bits)
}

// logistic returns two registers whose quotient is 1/(1+exp(-x)). It uses the exponential of -|x|,
// which cannot overflow, and is accurate where the quotient is small.
func (a *activation) logistic(x reg.VecVirtual) (part, whole reg.VecVirtual) {
	e := a.m.or(x, a.word(1<<31))
	a.exp.of(e)
	one := a.m.vec()
	VMOVUPS(a.number(1), one)
	whole = a.m.vec()
	VADDPS(one, e, whole)
	return a.choose(x, e, one), whole
}

// choose returns negative in the lanes in which x is negative, and otherwise in the others.
func (a *activation) choose(x, negative, otherwise reg.VecVirtual) reg.VecVirtual {
	v := a.m.vec()
	if a.m.wide() {
		k := K()
		VPMOVD2M(x, k)
		VBLENDMPS(negative, otherwise, k, v)
	} else {
		VBLENDVPS(x, negative, otherwise, v)
	}
	return v
}

// erfc has the coefficients of a polynomial p for which the complementary error function of z >= 0
// is t*exp(-z^2 + p(t)) with t = 1/(1+z/2), to a relative error of 1.2e-7 (Press, Teukolsky,
// Vetterling and Flannery, Numerical Recipes, 6.2).
var erfc = []float64{
	-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,
	0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
}

// gelu replaces x by x/2*erfc(-x/sqrt(2)).
func (a *activation) gelu(x reg.VecVirtual) {
	m := a.m
	size := m.and(x, a.word(1<<31-1))
	t, one := m.vec(), m.vec()
	VMOVUPS(a.number(1), one)
	VMULPS(a.number(math.Sqrt2/4), size, size)
	VADDPS(one, size, size)
	VDIVPS(size, one, t)
	p := m.vec()
	VMOVUPS(a.number(erfc[len(erfc)-1]), p)
	for i := len(erfc) - 2; i >= 0; i-- {
		VFMADD213PS(a.number(erfc[i]), t, p)
	}
	half := m.mul(a.number(0.5), x)
	VFNMADD231PS(x, half, p)
	a.exp.of(p)
	VMULPS(t, p, p)
	VMULPS(a.number(0.5), p, p)
	rest := m.vec()
	VSUBPS(p, one, rest)
	VMULPS(a.choose(x, p, rest), x, x)
}
