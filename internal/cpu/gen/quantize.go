package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func quantize(m *isa) {
	start("quantize"+m.suffix, "func(record *byte, x *float32, blocks int)",
		"quantize"+m.suffix+" writes blocks blocks of the record of x.")
	record, x, n := argument("record"), argument("x"), argument("blocks")
	q := &quantizer{m: m, record: record, x: x, magnitude: m.word(0x7fffffff)}
	if m.wide() {
		words := GP32()
		MOVL(operand.U32(scaled<<8|scaled), words)
		q.scaled = K()
		KMOVW(words, q.scaled)
		q.order = numbers(ZMM, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
		for i := range q.pair {
			a, b := int32(2*i), int32(2*i+1)
			q.pair[i] = numbers(ZMM, a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b)
		}
		q.first, q.other = numbers(ZMM, sumFirst[:]...), numbers(ZMM, sumOther[:]...)
		q.bias, q.flip = numbers(ZMM, sumBias[:]...), word(-0x7f7f7f80, ZMM)
		advance := func() {
			ADDQ(operand.U32(4*64), record)
			ADDQ(operand.U32(4*128), x)
			SUBQ(operand.Imm(4), n)
		}
		CMPQ(n, operand.Imm(4))
		JL(operand.LabelRef("ones"))
		d, inverse, nextD, nextInverse, finite := ZMM(), ZMM(), ZMM(), ZMM(), GP32()
		q.scalesOfFour(0, d, inverse, finite)
		Label("fours")
		CMPL(finite, operand.Imm(15))
		JNE(operand.LabelRef("ones"))
		CMPQ(n, operand.Imm(8))
		JL(operand.LabelRef("four"))
		// Scales have a long latency: meanwhile the previous blocks are written.
		q.scalesOfFour(4, nextD, nextInverse, finite)
		q.four(d, inverse)
		VMOVAPS(nextD, d)
		VMOVAPS(nextInverse, inverse)
		advance()
		JMP(operand.LabelRef("fours"))
		Label("four")
		q.four(d, inverse)
		advance()
		Label("ones")
	}
	TESTQ(n, n)
	JZ(operand.LabelRef("done"))
	Label("one")
	q.one()
	ADDQ(operand.Imm(64), record)
	ADDQ(operand.Imm(128), x)
	DECQ(n)
	JNZ(operand.LabelRef("one"))
	Label("done")
	VZEROUPPER()
	RET()
}

// A quantizer writes blocks of records.
type quantizer struct {
	m         *isa
	record, x reg.Register
	magnitude operand.Op

	// For several blocks at once:
	scaled       reg.Register      // register of the mask scaled
	order        reg.VecVirtual    // order of the words after packing
	pair         [2]reg.VecVirtual // selects the scales of two blocks
	first, other reg.VecVirtual    // order of the sums
	bias, flip   reg.VecVirtual
}

// block loads block i and returns its values and the largest magnitudes, by lane.
func (q *quantizer) block(i int) (values []reg.VecVirtual, top reg.VecVirtual) {
	for j := 0; j < 32; j += q.m.lanes {
		v := q.m.load(at(q.x, 128*i+4*j))
		values = append(values, v)
		size := q.m.and(v, q.magnitude)
		if top == nil {
			top = size
		} else {
			VPMAXUD(size, top, top)
		}
	}
	return values, top
}

// scales returns d and 127/top for the maxima in the lanes of top; both are 0 for maxima below
// 2^-100.
func (q *quantizer) scales(top reg.VecVirtual, like func() reg.VecVirtual) (d, inverse reg.VecVirtual) {
	enough := like()
	d, inverse = like(), like()
	VPCMPGTD(word(27<<23-1, like), top, enough)
	full := word(0x42fe0000, like) // 127
	VDIVPS(full, top, d)
	VPAND(enough, d, d)
	VDIVPS(top, full, inverse)
	VPAND(enough, inverse, inverse)
	return d, inverse
}

// word returns a register with v in all lanes.
func word(v int32, like func() reg.VecVirtual) reg.VecVirtual {
	r := like()
	VPBROADCASTD(table(v), r)
	return r
}

// one writes a block of any values.
func (q *quantizer) one() {
	values, top := q.block(0)
	if q.m.wide() {
		high := YMM()
		VEXTRACTI64X4(operand.U8(1), top, high)
		VPMAXUD(top.AsY(), high, high)
		top = high
	}
	other := YMM()
	VPERM2I128(operand.U8(0x01), top, top, other)
	VPMAXUD(other, top, top)
	for _, order := range []uint8{0x4e, 0xb1} {
		VPSHUFD(operand.U8(order), top, other)
		VPMAXUD(other, top, top)
	}
	d, inverse := q.scales(top, YMM)
	number := word(255<<23, YMM)
	VPCMPGTD(top, number, number)
	if q.m.wide() {
		all := ZMM()
		VPBROADCASTD(inverse.AsX(), all)
		inverse = all
	}
	for _, v := range values {
		VMULPS(inverse, v, v)
		VCVTPS2DQ(v, v)
	}
	octets := YMM()
	if q.m.wide() {
		low := XMM()
		VPMOVDB(values[0], low)
		VPMOVDB(values[1], octets.AsX())
		VINSERTI128(operand.U8(1), octets.AsX(), low.AsY(), octets)
	} else {
		VPACKSSDW(values[1], values[0], values[0])
		VPACKSSDW(values[3], values[2], values[2])
		VPACKSSWB(values[2], values[0], octets)
		octets = permute(octets, numbers(YMM, 0, 4, 1, 5, 2, 6, 3, 7), YMM)
	}
	VPAND(number, octets, octets)
	VMOVDQU(octets, at(q.record, 0))
	VMOVDQU(q.sums(octets, d), at(q.record, 32))
}

// scalesOfFour sets d and inverse, in every 128 bits, to those of four blocks from block from on.
// It sets finite to 15 if all their values are finite.
func (q *quantizer) scalesOfFour(from int, d, inverse reg.VecVirtual, finite reg.Register) {
	var tops [4]reg.VecVirtual
	for i := range tops {
		_, tops[i] = q.block(from + i)
	}
	// Combine two rows of 16 each so that four rows become one with the maxima of each.
	both := func(a, b reg.VecVirtual, low, high func(...operand.Op)) reg.VecVirtual {
		l, h := ZMM(), ZMM()
		low(b, a, l)
		high(b, a, h)
		VPMAXUD(h, l, l)
		return l
	}
	top := both(both(tops[0], tops[1], VPUNPCKLDQ, VPUNPCKHDQ), both(tops[2], tops[3], VPUNPCKLDQ, VPUNPCKHDQ), VPUNPCKLQDQ, VPUNPCKHQDQ)
	y, x := YMM(), XMM()
	VEXTRACTI64X4(operand.U8(1), top, y)
	VPMAXUD(top.AsY(), y, y)
	VEXTRACTI32X4(operand.U8(1), y, x)
	VPMAXUD(y.AsX(), x, x)
	number := XMM()
	VPCMPGTD(x, word(255<<23, XMM), number)
	VMOVMSKPS(number, finite)
	scale, inverted := q.scales(x, XMM)
	VSHUFI32X4(operand.U8(0), scale.AsZ(), scale.AsZ(), d)
	VSHUFI32X4(operand.U8(0), inverted.AsZ(), inverted.AsZ(), inverse)
}

// four writes four blocks of finite values.
func (q *quantizer) four(d, inverse reg.VecVirtual) {
	var values [4][2]reg.VecVirtual
	for i := range values {
		scale := ZMM()
		VPSHUFD(operand.U8(0x55*i), inverse, scale)
		for j := range values[i] {
			v := ZMM()
			VMULPS(at(q.x, 128*i+64*j), scale, v)
			VCVTPS2DQ(v, v)
			values[i][j] = v
		}
	}
	for i := 0; i < 4; i += 2 {
		a, b := values[i], values[i+1]
		VPACKSSDW(a[1], a[0], a[0])
		VPACKSSDW(b[1], b[0], b[0])
		VPACKSSWB(b[0], a[0], a[0])
		octets := permute(a[0], q.order, ZMM)
		sums := q.sums(octets, permute(d, q.pair[i/2], ZMM))
		first := ZMM()
		VINSERTI64X4(operand.U8(1), sums.AsY(), octets, first)
		VMOVUPS(first, at(q.record, 64*i))
		VSHUFI64X2(operand.U8(0xee), sums, octets, octets)
		VMOVUPS(octets, at(q.record, 64*i+64))
	}
}

// sums returns the words after the values in a block. A register of 64 bytes has two blocks, whose
// scales are in the lanes of d.
func (q *quantizer) sums(octets reg.VecVirtual, d operand.Op) reg.VecVirtual {
	two := octets.Size() == 64
	like := YMM
	if two {
		like = ZMM
	}
	// The sums of eight bytes as unsigned numbers, then of each half of a block.
	a, b, zero := like(), like(), like()
	if two {
		VPXORD(octets, q.flip, a)
		VPXORD(zero, zero, zero)
	} else {
		VPXOR(octets, word(-0x7f7f7f80, like), a)
		VPXOR(zero, zero, zero)
	}
	VPSADBW(zero, a, a)
	VPSHUFD(operand.U8(0x4e), a, b)
	VPADDD(b, a, a)
	var sums, other reg.VecVirtual
	if two {
		sums, other = permute(a, q.first, like), permute(a, q.other, like)
		VPADDD(other, sums, sums)
		VPSUBD(q.bias, sums, sums)
	} else {
		sums, other = permute(a, numbers(YMM, sumFirst[:8]...), like), permute(a, numbers(YMM, sumOther[:8]...), like)
		VPADDD(other, sums, sums)
		VPSUBD(table(sumBias[:8]...), sums, sums)
	}
	products := like()
	VCVTDQ2PS(sums, products)
	VMULPS(d, products, products)
	VPSUBD(sums, zero, sums)
	VPSLLD(operand.U8(7), sums, sums)
	if two {
		VMOVDQU32(products, q.scaled, sums)
	} else {
		VPBLENDD(operand.U8(scaled), products, sums, sums)
	}
	return sums
}

// Orders that turn the sums a and b of a block's halves, each in two words, into the vector 1, a+b,
// a+b, 0, a, b, a, b: the sum of two orders of words, minus the bias of the bytes.
var (
	sumFirst = [16]int32{1, 0, 0, 1, 0, 4, 0, 4, 9, 8, 8, 9, 8, 12, 8, 12}
	sumOther = [16]int32{1, 4, 4, 1, 1, 1, 1, 1, 9, 12, 12, 9, 9, 9, 9, 9}
	sumBias  = [16]int32{-1, 4096, 4096, 0, 2048, 2048, 2048, 2048, -1, 4096, 4096, 0, 2048, 2048, 2048, 2048}
)

// scaled marks the words after a block's values that are products with d.
const scaled = 0b11000101
