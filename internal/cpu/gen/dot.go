package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// float writes the products of float32 rows, and the dequantization for them.
func float() {
	avx2 := tier{"AVX2", 8, YMM, sumYMM}
	avx512 := tier{"AVX512", 16, ZMM, sumZMM}
	dot(avx2, 4, 2)
	dot(avx2, 8, 1)
	dot(avx512, 4, 4)
	dot(avx512, 8, 1)
	for _, s := range storages {
		dotStored(avx2, s)
		dotStored(avx512, s)
	}
	floats()
	q8_0()
	q4_0()
	q4_K()
	q5_K()
	q6_K()
}

// A tier is a vector instruction set with the width of its registers.
type tier struct {
	suffix   string
	lanes    int // float32 in a register
	register func() reg.VecVirtual
	sum      func(v reg.VecVirtual) reg.VecVirtual // adds the lanes; the sum is in lane 0
}

// dot writes a function that multiplies rows of w with tokens rows of x. Each product is summed in
// the lanes of one register, so that its bits do not depend on the number of products.
func dot(t tier, rows, tokens int) {
	name := "dot" + string(rune('0'+rows)) + "x" + string(rune('0'+tokens)) + t.suffix
	TEXT(name, NOSPLIT, "func(dst, w, x *float32, n, stride int)")
	Pragma("noescape")
	Doc(name+" writes to dst[t*8+r] the sum over i < n of w[r*stride+i]*x[t*stride+i].",
		"n is a positive multiple of "+map[int]string{8: "8", 16: "16"}[t.lanes]+".")
	dst := Load(Param("dst"), GP64())
	w := Load(Param("w"), GP64())
	x := Load(Param("x"), GP64())
	n := Load(Param("n"), GP64())
	stride := Load(Param("stride"), GP64())
	SHLQ(operand.Imm(2), stride)
	wRows := pointers(w, stride, rows)
	xRows := pointers(x, stride, tokens)

	sums := make([]reg.VecVirtual, rows*tokens)
	for i := range sums {
		sums[i] = t.register()
		VXORPS(sums[i].AsX(), sums[i].AsX(), sums[i].AsX())
	}
	i := GP64()
	XORQ(i, i)
	Label("loop")
	values := make([]reg.VecVirtual, tokens)
	for k := range values {
		values[k] = t.register()
		VMOVUPS(xRows(k).Idx(i, 4), values[k])
	}
	for r := range rows {
		if tokens == 1 {
			VFMADD231PS(wRows(r).Idx(i, 4), values[0], sums[r])
			continue
		}
		v := t.register()
		VMOVUPS(wRows(r).Idx(i, 4), v)
		for k := range tokens {
			VFMADD231PS(v, values[k], sums[k*rows+r])
		}
	}
	ADDQ(operand.Imm(uint64(t.lanes)), i)
	CMPQ(i, n)
	JLT(operand.LabelRef("loop"))
	for k, s := range sums {
		VMOVSS(t.sum(s).AsX(), operand.Mem{Base: dst, Disp: 4 * (k/rows*8 + k%rows)})
	}
	VZEROUPPER()
	RET()
}

// pointers returns the memory of row r of n rows, stride bytes apart. Each row has a register,
// because an operand has only one index, the loop's counter.
func pointers(base, stride reg.Register, n int) func(r int) operand.Mem {
	rows := []reg.Register{base}
	for r := 1; r < n; r++ {
		p := GP64()
		LEAQ(operand.Mem{Base: rows[r-1], Index: stride, Scale: 1}, p)
		rows = append(rows, p)
	}
	return func(r int) operand.Mem { return operand.Mem{Base: rows[r]} }
}

func sumZMM(v reg.VecVirtual) reg.VecVirtual {
	half := YMM()
	VEXTRACTF64X4(operand.Imm(1), v, half)
	VADDPS(v.AsY(), half, half)
	high := XMM()
	VEXTRACTF32X4(operand.Imm(1), half, high) // can access the upper 16 registers
	return sumXMM(half, high)
}

func sumYMM(v reg.VecVirtual) reg.VecVirtual {
	high := XMM()
	VEXTRACTF128(operand.Imm(1), v.AsY(), high)
	return sumXMM(v, high)
}

// sumXMM adds the lower and the upper half of v, and then the four lanes of the result.
func sumXMM(v, high reg.VecVirtual) reg.VecVirtual {
	VADDPS(v.AsX(), high, high)
	swapped := XMM()
	VMOVHLPS(high, high, swapped)
	VADDPS(swapped, high, high)
	VMOVSHDUP(high, swapped)
	VADDSS(swapped, high, high)
	return high
}
