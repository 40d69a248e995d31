package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A storage is a format of unquantized numbers in memory.
type storage struct {
	name  string
	bytes int
	// multiplyAdd adds the product of x and the weights at w to sum.
	multiplyAdd func(t tier, w operand.Mem, x, sum reg.VecVirtual)
}

var storages = []storage{
	{"F32", 4, func(_ tier, w operand.Mem, x, sum reg.VecVirtual) { VFMADD231PS(w, x, sum) }},
	{"F16", 2, func(t tier, w operand.Mem, x, sum reg.VecVirtual) {
		v := t.register()
		VCVTPH2PS(w, v)
		VFMADD231PS(v, x, sum)
	}},
	{"BF16", 2, func(t tier, w operand.Mem, x, sum reg.VecVirtual) {
		v := t.register()
		VPMOVZXWD(w, v)
		VPSLLD(operand.Imm(16), v, v)
		VFMADD231PS(v, x, sum)
	}},
}

// dotStored writes a function that multiplies eight rows of weights in their stored format with one
// row of x. It has the operations of dot8x1, and so the same bits.
func dotStored(t tier, s storage) {
	const rows, line, ahead = 8, 64, 256
	name := "dot8" + s.name + t.suffix
	start(name, "func(dst *float32, w *byte, x *float32, n, stride int)",
		name+" writes to dst[r] the sum over i < n of w[r][i]*x[i], row r of w being r*stride bytes",
		"behind the first. n is a positive multiple of "+map[int]string{8: "8", 16: "16"}[t.lanes]+". It asks memory for what stands",
		"a little later in each row, and behind the end of a row for the eight rows after these.")
	w, x, n, stride := argument("w"), argument("x"), argument("n"), argument("stride")
	row := pointers(w, stride, rows)
	next := GP64() // bytes from the end of a row to the row eight below
	IMUL3Q(operand.Imm(rows-1), stride, next)
	SHRQ(operand.U8(bits.TrailingZeros(uint(s.bytes))), next)

	sums := make([]reg.VecVirtual, rows)
	for i := range sums {
		sums[i] = t.register()
		VXORPS(sums[i].AsX(), sums[i].AsX(), sums[i].AsX())
	}
	scale := uint8(s.bytes)
	i, end := GP64(), GP64() // in elements
	XORQ(i, i)
	step := func(stretches int) {
		for k := range stretches {
			v := t.register()
			VMOVUPS(operand.Mem{Base: x, Index: i, Scale: 4, Disp: 4 * t.lanes * k}, v)
			for r := range rows {
				m := row(r).Idx(i, scale)
				m.Disp = s.bytes * t.lanes * k
				s.multiplyAdd(t, m, v, sums[r])
			}
		}
		ADDQ(operand.Imm(uint64(t.lanes*stretches)), i)
	}
	lines := line / s.bytes / t.lanes
	LEAQ(operand.Mem{Base: n, Disp: -(line/s.bytes - 1)}, end)
	CMPQ(i, end)
	JGE(operand.LabelRef("rest"))
	Label("loop")
	later, wrapped := GP64(), GP64()
	LEAQ(operand.Mem{Base: i, Disp: ahead / s.bytes}, later)
	LEAQ(operand.Mem{Base: later, Index: next, Scale: 1}, wrapped)
	CMPQ(later, n)
	CMOVQGE(wrapped, later)
	for r := range rows {
		PREFETCHT0(row(r).Idx(later, scale))
	}
	step(lines)
	CMPQ(i, end)
	JLT(operand.LabelRef("loop"))
	Label("rest")
	if lines > 1 {
		CMPQ(i, n)
		JGE(operand.LabelRef("done"))
		Label("last")
		step(1)
		CMPQ(i, n)
		JLT(operand.LabelRef("last"))
		Label("done")
	}
	dst := argument("dst")
	for r, s := range sums {
		VMOVSS(t.sum(s).AsX(), at(dst, 4*r))
	}
	VZEROUPPER()
	RET()
}
