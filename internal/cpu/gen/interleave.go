package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// interleave writes the function that interleaves words of rows.
func interleave(m *isa) {
	name := "interleave" + m.suffix
	TEXT(name, NOSPLIT, "func(to, from *byte, stride, words int)")
	Pragma("noescape")
	Doc(name + " writes a number of words of rows stride bytes apart, less than 2^27, a word of every row after the other.")
	to, from, words := argument("to"), argument("from"), argument("words")
	rows, stride := m.vec(), m.vec()
	VMOVUPS(table(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), rows)
	low := XMM()
	VMOVQ(argument("stride"), low)
	VPBROADCASTD(low, stride)
	VPMULLD(stride, rows, rows)
	Label("loop")
	v, at := m.vec(), operand.Mem{Base: from, Index: rows, Scale: 1}
	if m.wide() {
		k := K()
		KXNORW(k, k, k)
		VPXORD(v, v, v)
		VPGATHERDD(at, k, v)
	} else {
		all := m.vec()
		VPCMPEQD(all, all, all)
		VPXOR(v, v, v)
		VPGATHERDD(all, at, v)
	}
	VMOVUPS(v, operand.Mem{Base: to})
	ADDQ(operand.U8(4), from)
	ADDQ(operand.U8(4*m.lanes), to)
	DECQ(words)
	JNZ(operand.LabelRef("loop"))
	VZEROUPPER()
	RET()
}
