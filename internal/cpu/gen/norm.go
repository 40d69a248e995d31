package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The norms sum in float64: no square of a float32 exceeds its range.

func sum(m *isa) {
	start("sum"+m.suffix, "func(x *float32, n int) float64", "sum"+m.suffix+" is the sum of n elements.")
	x, n := argument("x"), argument("n")
	sums := m.zeros(4)
	m.sweep(n, 2, func(k int, s *stretch) {
		low, high := m.doubles(s.load(x))
		VADDPD(low, sums[2*k], sums[2*k])
		VADDPD(high, sums[2*k+1], sums[2*k+1])
	})
	m.returnTotal(sums)
}

func squares(m *isa) {
	start("squares"+m.suffix, "func(x *float32, n int, center float64) float64",
		"squares"+m.suffix+" is the sum of (x[i]-center)^2 over i < n.")
	x, n := argument("x"), argument("n")
	middle, sums := m.double("center"), m.zeros(4)
	m.sweep(n, 2, func(k int, s *stretch) {
		low, high := m.doubles(s.load(x))
		for i, v := range []reg.VecVirtual{low, high} {
			VSUBPD(middle, v, v)
			if s.mask != nil {
				m.keepDoubles(v, s.mask, i)
			}
			VFMADD231PD(v, v, sums[2*k+i])
		}
	})
	m.returnTotal(sums)
}

// double returns a float64 argument in all lanes.
func (m *isa) double(name string) reg.VecVirtual {
	x, v := XMM(), m.vec()
	Load(Param(name), x)
	VBROADCASTSD(x, v)
	return v
}

// single returns a float32 argument in all lanes.
func (m *isa) single(name string) reg.VecVirtual {
	x, v := XMM(), m.vec()
	Load(Param(name), x)
	VBROADCASTSS(x, v)
	return v
}

// keepDoubles zeroes the float64 in v whose lanes are not in a mask of float32. v is the lower half
// of these lanes, or the upper half if half is 1.
func (m *isa) keepDoubles(v reg.VecVirtual, mask reg.Register, half int) {
	if m.wide() {
		k := K()
		KSHIFTRW(operand.U8(8*half), mask, k)
		VMOVAPD_Z(v, k, v)
		return
	}
	words, wide := XMM(), YMM()
	VEXTRACTF128(operand.U8(half), mask.(reg.VecVirtual), words)
	VPMOVSXDQ(words, wide)
	VANDPD(wide, v, v)
}

func (m *isa) returnTotal(sums []reg.VecVirtual) {
	VADDPD(sums[1], sums[0], sums[0])
	VADDPD(sums[3], sums[2], sums[2])
	VADDPD(sums[2], sums[0], sums[0])
	Store(m.total(sums[0]), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func scale(m *isa) {
	start("scale"+m.suffix, "func(y, x, w *float32, n int, by float32)",
		"scale"+m.suffix+" writes x*by*w to y, all of n elements.")
	y, x, w, n := argument("y"), argument("x"), argument("w"), argument("n")
	by := m.single("by")
	m.sweep(n, 2, func(_ int, s *stretch) {
		v := s.load(x)
		VMULPS(by, v, v)
		VMULPS(s.load(w), v, v)
		s.store(v, y)
	})
	VZEROUPPER()
	RET()
}

func center(m *isa) {
	start("center"+m.suffix, "func(y, x, w, b *float32, n int, mean, by float64)",
		"center"+m.suffix+" writes (x-mean)*by*w + b to y, all of n elements.")
	y, x, w, b, n := argument("y"), argument("x"), argument("w"), argument("b"), argument("n")
	mean, by := m.double("mean"), m.double("by")
	m.sweep(n, 1, func(_ int, s *stretch) {
		low, high := m.doubles(s.load(x))
		for _, v := range []reg.VecVirtual{low, high} {
			VSUBPD(mean, v, v)
			VMULPD(by, v, v)
		}
		v := m.singles(low, high)
		VFMADD213PS(s.load(b), s.load(w), v)
		s.store(v, y)
	})
	VZEROUPPER()
	RET()
}
