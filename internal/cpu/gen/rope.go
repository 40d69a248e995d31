package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// eachHead runs body for each of heads rows of y and x, which are dim elements apart. All use the
// same cosines and sines.
func eachHead(y, x reg.Register, body func()) {
	heads, dim := argument("heads"), argument("dim")
	SHLQ(operand.U8(2), dim)
	Label("head")
	body()
	ADDQ(dim, y)
	ADDQ(dim, x)
	DECQ(heads)
	JNZ(operand.LabelRef("head"))
	VZEROUPPER()
	RET()
}

func rotateHalves(m *isa) {
	start("rotateHalves"+m.suffix, "func(y, x, cos, sin *float32, n, heads, dim int)",
		"rotateHalves"+m.suffix+" turns pairs (i, i+n), i < n, of heads rows, dim elements apart.")
	y, x, cos, sin, n := argument("y"), argument("x"), argument("cos"), argument("sin"), argument("n")
	eachHead(y, x, func() {
		x2, y2 := GP64(), GP64()
		LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, x2)
		LEAQ(operand.Mem{Base: y, Index: n, Scale: 4}, y2)
		m.sweep(n, 1, func(_ int, s *stretch) {
			c, d, u, v := s.load(cos), s.load(sin), s.load(x), s.load(x2)
			p, q := m.mul(v, d), m.mul(u, d)
			VFMSUB231PS(c, u, p)
			VFMADD231PS(c, v, q)
			s.store(p, y)
			s.store(q, y2)
		})
	})
}

func rotateNeighbours(m *isa) {
	start("rotateNeighbours"+m.suffix, "func(y, x, cos, sin *float32, n, heads, dim int)",
		"rotateNeighbours"+m.suffix+" turns pairs (2i, 2i+1), 2i < n, of heads rows, dim elements apart.",
		"Cosine and sine stand at both places.")
	y, x, cos, sin, n := argument("y"), argument("x"), argument("cos"), argument("sin"), argument("n")
	eachHead(y, x, func() {
		m.sweep(n, 1, func(_ int, s *stretch) {
			c, v := s.load(cos), s.load(x)
			swapped := m.vec()
			VPERMILPS(operand.U8(0xb1), v, swapped)
			VMULPS(s.load(sin), swapped, swapped)
			VFMADDSUB213PS(swapped, c, v)
			s.store(v, y)
		})
	})
}
