package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An isa is a vector instruction set with 32-bit lanes. Its methods hide the differences between
// sets.
type isa struct {
	suffix string
	lanes  int

	hoisted map[[16]byte]reg.VecVirtual // patterns in registers of the current function
}

var (
	avx2   = &isa{suffix: "AVX2", lanes: 8}
	avx512 = &isa{suffix: "AVX512", lanes: 16}
)

func (m *isa) wide() bool { return m.lanes == 16 }

func (m *isa) vec() reg.VecVirtual {
	if m.wide() {
		return ZMM()
	}
	return YMM()
}

// word returns v in all lanes.
func (m *isa) word(v uint32) operand.Op { return m.constant(words(v)) }

// words returns a pattern with v in all words.
func words(v uint32) (p [16]byte) {
	for i := range p {
		p[i] = byte(v >> (i % 4 * 8))
	}
	return p
}

// octets returns v in all bytes.
func (m *isa) octets(v byte) operand.Op { return m.word(uint32(v) * 0x01010101) }

var patterns = map[[16]byte]operand.Mem{}

// pattern returns read-only memory with p repeated to the size of a register.
func pattern(p [16]byte) operand.Mem {
	if at, ok := patterns[p]; ok {
		return at
	}
	at := GLOBL(fmt.Sprintf("pattern%d", len(patterns)), 8|16) // RODATA, NOPTR
	for i := range 8 {
		var v uint64
		for j := 7; j >= 0; j-- {
			v = v<<8 | uint64(p[i%2*8+j])
		}
		DATA(8*i, operand.U64(v))
	}
	patterns[p] = at
	return at
}

// constant returns p in each 128 bits: a register, or memory if there are few registers. In a
// function that hoists patterns, other patterns are in memory.
func (m *isa) constant(p [16]byte) operand.Op {
	switch v, ok := m.hoisted[p]; {
	case ok:
		return v
	case m.hoisted != nil || !m.wide():
		return pattern(p)
	}
	return m.quarters(p)
}

// hoist keeps patterns in registers for the rest of the function.
func (m *isa) hoist(patterns ...[16]byte) {
	m.hoisted = map[[16]byte]reg.VecVirtual{}
	for _, p := range patterns {
		m.hoisted[p] = m.quarters(p)
	}
}

// quarters returns a register with p in each 128 bits.
func (m *isa) quarters(p [16]byte) reg.VecVirtual {
	v := m.vec()
	if m.wide() {
		VBROADCASTI32X4(pattern(p), v)
	} else {
		VBROADCASTI128(pattern(p), v)
	}
	return v
}

// zero returns a zeroed register, by the idiom that costs nothing. avo does not count VXORPS of a
// register with itself as a read.
func (m *isa) zero() reg.VecVirtual {
	v := m.vec()
	VXORPS(v, v, v)
	return v
}

func (m *isa) and(a, b operand.Op) reg.VecVirtual {
	v := m.vec()
	if m.wide() {
		VPANDD(b, a, v)
	} else {
		VPAND(b, a, v)
	}
	return v
}

func (m *isa) or(a, b operand.Op) reg.VecVirtual {
	v := m.vec()
	if m.wide() {
		VPORD(b, a, v)
	} else {
		VPOR(b, a, v)
	}
	return v
}

func (m *isa) xor(a, b operand.Op) reg.VecVirtual {
	v := m.vec()
	if m.wide() {
		VPXORD(b, a, v)
	} else {
		VPXOR(b, a, v)
	}
	return v
}

// join sets a to a | b&mask and returns it.
func (m *isa) join(a reg.VecVirtual, b, mask operand.Op) reg.VecVirtual {
	if m.wide() {
		VPTERNLOGD(operand.U8(0xf8), mask, b, a)
	} else {
		VPOR(m.and(b, mask), a, a)
	}
	return a
}

// shift shifts the lanes as unsigned numbers to the right, or to the left if n is negative.
func (m *isa) shift(a operand.Op, n int) operand.Op {
	switch {
	case n == 0:
		return a
	case n > 0:
		v := m.vec()
		VPSRLD(operand.U8(n), a, v)
		return v
	}
	v := m.vec()
	VPSLLD(operand.U8(-n), a, v)
	return v
}

// signedByte returns byte i of each lane as a signed number.
func (m *isa) signedByte(a operand.Op, i int) reg.VecVirtual {
	v := m.vec()
	VPSRAD(operand.U8(24), m.shift(a, 8*i-24), v)
	return v
}

func (m *isa) shuffle(a, by operand.Op) reg.VecVirtual {
	v := m.vec()
	VPSHUFB(by, a, v)
	return v
}

func (m *isa) addBytes(a, b operand.Op) reg.VecVirtual {
	v := m.vec()
	VPADDB(b, a, v)
	return v
}

func (m *isa) subWords(a, b operand.Op) reg.VecVirtual {
	v := m.vec()
	VPSUBD(b, a, v)
	return v
}

// floats converts the lanes from signed numbers to float32.
func (m *isa) floats(a operand.Op) reg.VecVirtual {
	v := m.vec()
	VCVTDQ2PS(a, v)
	return v
}

func (m *isa) mul(a, b operand.Op) reg.VecVirtual {
	v := m.vec()
	VMULPS(a, b, v)
	return v
}

func (m *isa) load(at operand.Mem) reg.VecVirtual {
	v := m.vec()
	VMOVUPS(at, v)
	return v
}

// everywhere returns the 32 bits at a place in all lanes.
func (m *isa) everywhere(at operand.Mem) reg.VecVirtual {
	v := m.vec()
	VPBROADCASTD(at, v)
	return v
}
