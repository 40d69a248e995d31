package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak writes the loops that measure the peak speed of multiply-adds.
func peak() {
	for _, m := range []*isa{avx2, avx512} {
		m.peakProducts()
		m.peakFloats()
	}
}

// peakProducts multiplies bytes of 1, so that each lane's four products add 4 to a sum.
func (m *isa) peakProducts() {
	doc := "8-bit products of 1 and 1, 4 a lane"
	if m.wide() {
		m.peakLoop("peakProducts", doc, 16, []uint32{0x01010101}, func(sum reg.VecVirtual, one []reg.VecVirtual) {
			VPDPBUSD(one[0], one[0], sum)
		}, nil)
		return
	}
	m.peakLoop("peakProducts", doc, 12, []uint32{0x01010101, 0x00010001}, func(sum reg.VecVirtual, one []reg.VecVirtual) {
		v := m.vec()
		VPMADDUBSW(one[0], one[0], v)
		VPMADDWD(one[1], v, v)
		VPADDD(v, sum, sum)
	}, nil)
}

// peakFloats multiplies 1 by 1 in float32. The sums stay small enough to be exact.
func (m *isa) peakFloats() {
	sums := 12
	if m.wide() {
		sums = 16
	}
	m.peakLoop("peakFloats", "float32 products of 1 and 1, one a lane", sums, []uint32{0x3f800000}, func(sum reg.VecVirtual, one []reg.VecVirtual) {
		VFMADD231PS(one[0], one[0], sum)
	}, func(sum reg.VecVirtual) { VCVTTPS2DQ(sum, sum) })
}

// peakLoop writes a loop that adds to as many sums in registers as hide the latency of an
// instruction, one step each per round. At the end, finish converts each sum to integers, and they
// are added.
func (m *isa) peakLoop(name, doc string, sums int, constants []uint32, step func(sum reg.VecVirtual, constants []reg.VecVirtual), finish func(sum reg.VecVirtual)) {
	name += m.suffix
	TEXT(name, NOSPLIT, "func(sums *int32, rounds int)")
	Pragma("noescape")
	Doc(name+" adds to sums, by lane of a register, in each of 1 and more rounds",
		fmt.Sprintf("%d times %s.", sums, doc))
	to, rounds := Load(Param("sums"), GP64()), Load(Param("rounds"), GP64())
	var held []reg.VecVirtual
	for _, v := range constants {
		held = append(held, m.quarters(words(v)))
	}
	sum := make([]reg.VecVirtual, sums)
	for i := range sum {
		sum[i] = m.zero()
	}
	Label("loop")
	for i := range sum {
		step(sum[i], held)
	}
	DECQ(rounds)
	JNZ(operand.LabelRef("loop"))
	for i := range sum {
		if finish != nil {
			finish(sum[i])
		}
		if i > 0 {
			VPADDD(sum[i], sum[0], sum[0])
		}
	}
	at := operand.Mem{Base: to}
	VPADDD(at, sum[0], sum[0])
	if m.wide() {
		VMOVDQU32(sum[0], at)
	} else {
		VMOVDQU(sum[0], at)
	}
	VZEROUPPER()
	RET()
}
