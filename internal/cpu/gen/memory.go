package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// memory writes the loops that wait for memory and those that measure it.
func memory() {
	prefetchLines()
	TEXT("pause", NOSPLIT, "func()")
	Doc("pause tells the processor that the caller waits in a loop.")
	PAUSE()
	RET()
	for _, m := range []*isa{avx2, avx512} {
		sumWords(m, "sumWords"+m.suffix, false)
		sumWords(m, "sumWordsAhead"+m.suffix, true)
	}
}

// sumWords adds a register at a time to eight sums, so that no addition waits for another.
func sumWords(m *isa, name string, prefetch bool) {
	const sums = 8
	width := 4 * m.lanes
	signature := "func(b *byte, n int) uint64"
	doc := []string{name + " is the sum of n bytes as 64-bit words, n a positive multiple of 512."}
	if prefetch {
		signature = "func(b *byte, n, ahead int) uint64"
		doc = append(doc, "It asks for what lies ahead bytes beyond what it reads.")
	}
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc...)
	b, n := Load(Param("b"), GP64()), Load(Param("n"), GP64())
	var ahead reg.Register
	if prefetch {
		ahead = Load(Param("ahead"), GP64())
	}
	var sum [sums]reg.VecVirtual
	for i := range sum {
		sum[i] = m.zero()
	}
	Label("loop")
	for i := range 512 / width {
		if prefetch && i*width%64 == 0 {
			PREFETCHT0(operand.Mem{Base: b, Index: ahead, Scale: 1, Disp: i * width})
		}
		VPADDQ(operand.Mem{Base: b, Disp: i * width}, sum[i%sums], sum[i%sums])
	}
	ADDQ(operand.U32(512), b)
	SUBQ(operand.U32(512), n)
	JNZ(operand.LabelRef("loop"))
	for half := sums / 2; half > 0; half /= 2 {
		for i := range half {
			VPADDQ(sum[i+half], sum[i], sum[i])
		}
	}
	y, x := sum[0].AsY(), XMM()
	if m.wide() {
		upper := YMM()
		VEXTRACTI64X4(operand.U8(1), sum[0], upper)
		VPADDQ(upper, y, y)
	}
	VEXTRACTI128(operand.U8(1), y, x)
	VPADDQ(x, sum[0].AsX(), x)
	high := XMM()
	VPSRLDQ(operand.U8(8), x, high)
	VPADDQ(high, x, x)
	total := GP64()
	VMOVQ(x, total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// prefetchLines writes a function that prefetches memory.
func prefetchLines() {
	TEXT("prefetch", NOSPLIT, "func(p *byte, lines int)")
	Pragma("noescape")
	Doc("prefetch asks for a number of lines of 64 bytes from p on, for the second-level cache. They need not exist.")
	p, lines := argument("p"), argument("lines")
	Label("line")
	PREFETCHT1(operand.Mem{Base: p})
	ADDQ(operand.U32(64), p)
	DECQ(lines)
	JNZ(operand.LabelRef("line"))
	RET()
}
