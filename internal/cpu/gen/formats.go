package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A format is a block format of weights: how values and scales come from the words
// and heads of interleaved rows, a row in each lane. Places are those in a block of
// the format, in bytes. The layouts are ggml's.
type format struct {
	name   string
	size   int // of a block, in bytes
	values int // of a block
	sub    int // values that share a scale: a piece
	signed bool
	head   head
	masks  []byte    // that group needs
	table  *[16]int8 // what four bits stand for, nil where they are numbers
	most   int       // magnitude of a value
	offset int       // what an unsigned number in a block exceeds its signed value by, a power of two; 0 means 128

	// group is group g of four values, as bytes.
	group func(e *env, g int) reg.VecVirtual
	// raised is the power of two that group's values of a piece are too large by,
	// nil for none: where registers are wide, bits are not moved down.
	raised func(piece int) int
	// scale is the scale of a piece and, unless values are signed, what is added.
	scale func(e *env, piece int) (scale, low reg.VecVirtual)
}

// A head is the part of a block that lies apart.
type head struct{ at, count, width int }

func (h head) bytes() int { return h.count * h.width }

var iq4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

var e2m1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

var formats = []*format{
	{name: "Q4_0", most: 8, masks: []byte{15}, size: 18, values: 32, sub: 32, signed: true, head: head{0, 1, 2}, offset: 8, scale: headScale,
		group: func(e *env, g int) reg.VecVirtual { return e.less(e.nibble(2, g)) }},
	{name: "Q4_1", most: 15, masks: []byte{15}, size: 20, values: 32, sub: 32, head: head{0, 2, 2}, scale: headScale,
		group: func(e *env, g int) reg.VecVirtual { return e.nibble(4, g) }},
	{name: "Q5_0", most: 16, masks: []byte{15, 16}, size: 22, values: 32, sub: 32, signed: true, head: head{0, 1, 2}, offset: 16, scale: headScale,
		group: func(e *env, g int) reg.VecVirtual { return e.less(e.fifth(2, g, e.nibble(6, g))) }},
	{name: "Q5_1", most: 31, masks: []byte{15, 16}, size: 24, values: 32, sub: 32, head: head{0, 2, 2}, scale: headScale,
		group: func(e *env, g int) reg.VecVirtual { return e.fifth(4, g, e.nibble(8, g)) }},
	{name: "Q8_0", most: 128, masks: []byte{0x80}, size: 34, values: 32, sub: 32, signed: true, head: head{0, 1, 2}, scale: headScale,
		group: func(e *env, g int) reg.VecVirtual {
			if !e.wide() {
				return e.column(2 + 4*g)
			}
			return e.xor(e.column(2+4*g), e.octets(0x80))
		}},
	{name: "IQ4_NL", most: 127, masks: []byte{15}, table: &iq4, size: 18, values: 32, sub: 32, signed: true, head: head{0, 1, 2}, scale: headScale,
		group: func(e *env, g int) reg.VecVirtual { return e.lookUp(e.nibble(2, g)) }},
	{name: "MXFP4", most: 12, masks: []byte{15}, table: &e2m1, size: 17, values: 32, sub: 32, signed: true, head: head{0, 1, 1},
		scale: func(e *env, _ int) (scale, low reg.VecVirtual) {
			v := e.vec()
			VPMOVZXBD(e.headAt(0), v)
			return e.powers(v), nil
		},
		group: func(e *env, g int) reg.VecVirtual { return e.lookUp(e.nibble(1, g)) }},
	{name: "Q2_K", most: 3, masks: []byte{3, 3 << 2, 3 << 4, 3 << 6}, size: 84, values: 256, sub: 16, head: head{80, 2, 2}, scale: scaleQ2,
		raised: func(piece int) int { return piece % 8 / 2 * 2 },
		group: func(e *env, g int) reg.VecVirtual {
			v, up := e.column(16+g/32*32+g%8*4), g%32/8*2
			if e.wide() {
				return e.and(v, e.octets(3<<up))
			}
			return e.and(e.shift(v, up), e.octets(3))
		}},
	{name: "Q3_K", most: 4, masks: []byte{3, 4}, size: 110, values: 256, sub: 16, signed: true, head: head{108, 1, 2}, offset: 4, scale: scaleQ3,
		group: func(e *env, g int) reg.VecVirtual {
			half, n, at := g/32, g%32/8, g%8*4
			v := e.and(e.shift(e.column(32+32*half+at), 2*n), e.octets(3))
			return e.less(e.join(v, e.shift(e.column(at), 4*half+n-2), e.octets(4)))
		}},
	{name: "Q4_K", most: 15, masks: []byte{15, 0xf0}, size: 144, values: 256, sub: 32, head: head{0, 2, 2}, scale: scaleK4,
		raised: func(piece int) int { return piece % 2 * 4 },
		group: func(e *env, g int) reg.VecVirtual {
			v := e.column(16 + g/16*32 + g%8*4)
			if g%16 < 8 {
				return e.and(v, e.octets(15))
			}
			if e.wide() {
				return e.and(v, e.octets(0xf0))
			}
			return e.and(e.shift(v, 4), e.octets(15))
		}},
	{name: "Q5_K", most: 31, masks: []byte{15, 16}, size: 176, values: 256, sub: 32, head: head{0, 2, 2}, scale: scaleK4,
		group: func(e *env, g int) reg.VecVirtual {
			piece, at := g/8, g%8*4
			v := e.and(e.shift(e.column(48+piece/2*32+at), piece%2*4), e.octets(15))
			return e.join(v, e.shift(e.column(16+at), piece-4), e.octets(16))
		}},
	{name: "Q6_K", most: 32, masks: []byte{15, 0x30}, size: 210, values: 256, sub: 16, signed: true, head: head{208, 1, 2}, offset: 32, scale: scaleQ6,
		group: func(e *env, g int) reg.VecVirtual {
			half, n, at := g/32, g%32/8, g%8*4
			v := e.and(e.shift(e.column(64*half+n%2*32+at), n/2*4), e.octets(15))
			return e.less(e.join(v, e.shift(e.column(128+32*half+at), 2*n-4), e.octets(0x30)))
		}},
	{name: "IQ4_XS", most: 127, masks: []byte{15}, table: &iq4, size: 136, values: 256, sub: 32, signed: true, head: head{0, 2, 2}, scale: scaleIQ4,
		group: func(e *env, g int) reg.VecVirtual { return e.lookUp(e.nibble(8+g/8*16, g%8)) }},
}

// nibble is group g of 32 values whose lower and upper four bits lie from at on.
func (e *env) nibble(at, g int) reg.VecVirtual {
	return e.and(e.shift(e.column(at+g%4*4), g/4*4), e.octets(15))
}

// lookUp is what four bits stand for.
func (e *env) lookUp(v reg.VecVirtual) reg.VecVirtual {
	table, ok := e.constant(e.stands()).(reg.VecVirtual)
	if !ok {
		table = e.quarters(e.stands())
	}
	out := e.vec()
	VPSHUFB(v, table, out)
	return out
}

// less is an unsigned number without the format's offset.
func (e *env) less(v reg.VecVirtual) reg.VecVirtual {
	if e.bias == e.offset {
		return v
	}
	return e.addBytes(v, e.octets(byte(e.bias-e.offset)))
}

// fifth adds to v, group g, the fifth bits: bit i of the words at at is that of
// value i.
func (e *env) fifth(at, g int, v reg.VecVirtual) reg.VecVirtual {
	var spread, which [16]byte
	for i := range 16 {
		spread[i] = byte(i/4*4 + g/2)
		which[i] = 1 << (g%2*4 + i%4)
	}
	bytes, ones := e.shuffle(e.column(at), e.constant(spread)), e.constant(which)
	if e.wide() {
		k := K()
		VPTESTMB(ones, bytes, k)
		VPADDB(e.octets(16), v, k, v)
		return v
	}
	found := e.and(bytes, ones)
	VPCMPEQB(ones, found, found)
	return e.join(v, found, e.octets(16))
}

// headScale is the scale in the head and what is added, where that stands behind it.
func headScale(e *env, _ int) (scale, low reg.VecVirtual) {
	if scale = e.half(0); !e.signed {
		low = e.half(1)
	}
	return scale, low
}

// powers are 2^(v-128), NaN for 255.
func (e *env) powers(v reg.VecVirtual) reg.VecVirtual {
	out, small := e.vec(), e.vec()
	VPSLLD(operand.U8(23), e.subWords(v, e.word(1)), out)
	VPSLLVD(v, e.everywhere(pattern([16]byte{2: 0x20})), small) // of 0 and 1 the power is below the normal numbers
	if e.wide() {
		k := K()
		VPCMPD(operand.U8(1), e.word(2), v, k)
		VMOVDQA32(small, k, out)
		k = K()
		VPCMPD(operand.U8(0), e.word(255), v, k)
		VMOVDQU32(e.word(0x7fc00000), k, out) // patterns lie anywhere
		return out
	}
	is := e.vec()
	VPCMPGTD(e.word(1), v, is)
	VPBLENDVB(is, out, small, out)
	VPCMPEQD(e.word(255), v, is)
	VPBLENDVB(is, e.word(0x7fc00000), out, out)
	return out
}

// byteAt is byte i of each lane as an unsigned number.
func (e *env) byteAt(v operand.Op, i int) reg.VecVirtual {
	var p [16]byte
	for j := range p {
		p[j] = 0x80
		if j%4 == 0 {
			p[j] = byte(j + i)
		}
	}
	return e.shuffle(v, e.constant(p))
}

// scaled is d times numbers.
func (e *env) scaled(d, numbers reg.VecVirtual) reg.VecVirtual {
	VCVTDQ2PS(numbers, numbers)
	VMULPS(d, numbers, numbers)
	return numbers
}

// halves are the scale and the minimum, as it is added, of the whole block.
func (e *env) halves() (d, low reg.VecVirtual) {
	d = e.keep("d", func() reg.VecVirtual { return e.half(0) })
	low = e.keep("low", func() reg.VecVirtual { return e.xor(e.half(1), e.word(1<<31)) })
	return d, low
}

// scaleK4 is of six bits each: those of the first four pieces are bytes, those of the
// others have four bits after them and two in them.
func scaleK4(e *env, piece int) (scale, low reg.VecVirtual) {
	d, m := e.halves()
	six := func(at, up int) reg.VecVirtual {
		return e.keep(fmt.Sprint(at, piece/4), func() reg.VecVirtual {
			v := e.load(e.place(at))
			if piece < 4 {
				return e.and(v, e.octets(63))
			}
			return e.join(e.and(e.shift(e.load(e.place(12)), up), e.octets(15)), e.shift(v, 2), e.octets(0x30))
		})
	}
	return e.scaled(d, e.byteAt(six(4, 0), piece%4)), e.scaled(m, e.byteAt(six(8, 4), piece%4))
}

func scaleQ2(e *env, piece int) (scale, low reg.VecVirtual) {
	d, m := e.halves()
	four := func(up int) reg.VecVirtual {
		return e.keep(fmt.Sprint(piece/4, up), func() reg.VecVirtual {
			return e.and(e.shift(e.load(e.place(piece/4*4)), up), e.octets(15))
		})
	}
	return e.scaled(d, e.byteAt(four(0), piece%4)), e.scaled(m, e.byteAt(four(4), piece%4))
}

// scaleQ3 is of six bits: four of the first eight bytes, two of the last four.
func scaleQ3(e *env, piece int) (scale, low reg.VecVirtual) {
	d := e.keep("d", func() reg.VecVirtual { return e.half(0) })
	i := piece / 4
	six := e.keep(fmt.Sprint(i), func() reg.VecVirtual {
		v := e.and(e.shift(e.load(e.place(96+i%2*4)), i/2*4), e.octets(15))
		return e.join(v, e.shift(e.load(e.place(104)), 2*i-4), e.octets(0x30))
	})
	return e.scaled(d, e.subWords(e.byteAt(six, piece%4), e.word(32))), nil
}

func scaleQ6(e *env, piece int) (scale, low reg.VecVirtual) {
	d := e.keep("d", func() reg.VecVirtual { return e.half(0) })
	four := e.keep(fmt.Sprint(piece/4), func() reg.VecVirtual { return e.load(e.place(192 + piece/4*4)) })
	return e.scaled(d, e.signedByte(four, piece%4)), nil
}

// scaleIQ4 is of six bits: four beside each other, two in the head.
func scaleIQ4(e *env, piece int) (scale, low reg.VecVirtual) {
	d := e.keep("d", func() reg.VecVirtual { return e.half(0) })
	high := e.keep("high", func() reg.VecVirtual {
		v := e.vec()
		VPMOVZXWD(e.headAt(1), v)
		return v
	})
	v := e.and(e.shift(e.load(e.place(4)), 4*piece), e.word(15))
	v = e.join(v, e.shift(high, 2*piece-4), e.word(0x30))
	return e.scaled(d, e.subWords(v, e.word(32))), nil
}
