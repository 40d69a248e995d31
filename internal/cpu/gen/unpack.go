package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A format is a block format of weights and how its blocks, of as many rows as a
// register has lanes, become a panel: the lanes are rows, and each lane holds four
// neighbouring values.
type format struct {
	name   string
	size   int  // of a block, in bytes
	values int  // of a block
	sub    int  // values that share a scale
	signed bool // values may be negative; otherwise there are minima, added to the products with the scales
	offset int  // what an unsigned number in a block exceeds its signed value by, a power of two; 0 means 128
	scales func(e *env)
	quants func(e *env)
	fuse   func(u *fuser) // where 64 bytes of a row are loaded at a time
}

// An env is a function in the making.
type env struct {
	*isa
	*format
	row    [4]reg.Register // row 4i
	stride reg.Register
	three  reg.Register // 3*stride
	out    reg.Register // scales
	near   reg.Register // the next block of row 0, where it does not follow this one

	// value is given group k/4 of the block's values, as bytes; done is called when
	// all groups of a piece of the block have been given.
	value func(group int, v reg.VecVirtual)
	done  func(sub int)

	bias int // added to signed values in a panel
}

// newEnv loads the parameters that all functions over blocks have.
func newEnv(m *isa, f *format) *env {
	e := &env{isa: m, format: f, out: argument("scales"), stride: argument("stride")}
	e.row[0] = argument("w")
	for i := 1; i < m.lanes/4; i++ {
		e.row[i] = GP64()
		LEAQ(operand.Mem{Base: e.row[i-1], Index: e.stride, Scale: 4}, e.row[i])
	}
	e.three = GP64()
	LEAQ(operand.Mem{Base: e.stride, Index: e.stride, Scale: 2}, e.three)
	if m.wide() && f.signed { // the left factor of VPDPBUSD is unsigned
		e.bias = 128
		if f.offset > 0 {
			e.bias = f.offset
		}
	}
	return e
}

// at is row 4i+r of the block at hand.
func (e *env) at(i, r, disp int) operand.Mem {
	a := operand.Mem{Base: e.row[i], Disp: disp}
	switch r {
	case 1, 2:
		a.Index, a.Scale = e.stride, uint8(r)
	case 3:
		a.Index, a.Scale = e.three, 1
	}
	return a
}

// pieces loads 16 bytes of every row: register r holds rows r, 4+r, 8+r, 12+r.
func (e *env) pieces(disp int) (z [4]reg.VecVirtual) {
	for r := range z {
		z[r] = e.vec()
		// The first load writes the whole register: a load of its lowest quarter
		// would count as keeping the others, from one block to the next.
		if e.wide() {
			VBROADCASTI32X4(e.at(0, r, disp), z[r])
			for i := 1; i < 4; i++ {
				VBROADCASTI32X4(e.at(i, r, disp), e.masks[i], z[r])
			}
		} else {
			VBROADCASTI128(e.at(0, r, disp), z[r])
			VINSERTI128(operand.U8(1), e.at(1, r, disp), z[r], z[r])
		}
	}
	return z
}

// columns turns pieces: column c holds 32-bit word c of every row, rows in order.
func (e *env) columns(z [4]reg.VecVirtual, want ...int) (c [4]reg.VecVirtual) {
	wanted := func(i int) bool {
		for _, w := range want {
			if w == i {
				return true
			}
		}
		return len(want) == 0
	}
	for half := range 2 {
		if !wanted(2*half) && !wanted(2*half+1) {
			continue
		}
		low, high := e.vec(), e.vec()
		for i, v := range []reg.VecVirtual{low, high} {
			if half == 0 {
				VPUNPCKLDQ(z[2*i+1], z[2*i], v)
			} else {
				VPUNPCKHDQ(z[2*i+1], z[2*i], v)
			}
		}
		if wanted(2 * half) {
			c[2*half] = e.vec()
			VPUNPCKLQDQ(high, low, c[2*half])
		}
		if wanted(2*half + 1) {
			c[2*half+1] = e.vec()
			VPUNPCKHQDQ(high, low, c[2*half+1])
		}
	}
	return c
}

func (e *env) words(disp int, want ...int) [4]reg.VecVirtual {
	return e.columns(e.pieces(disp), want...)
}

// entry is the size of a scale, with its minimum where there are any, of all rows.
func (e *env) entry() int {
	if e.signed {
		return 4 * e.lanes
	}
	return 8 * e.lanes
}

// scale and low put the scale and what is added, over all rows, of piece sub.
func (e *env) scale(sub int, v reg.VecVirtual) {
	VMOVUPS(v, operand.Mem{Base: e.out, Disp: sub * e.entry()})
}

func (e *env) low(sub int, v reg.VecVirtual) {
	VMOVUPS(v, operand.Mem{Base: e.out, Disp: sub*e.entry() + 4*e.lanes})
}

// longBlocks reports whether a row has so few blocks that the processor does not
// see where its loads go.
func (e *env) longBlocks() bool { return e.values == 256 }

// block does one block and goes on to the next. It prefetches as much from next
// into the second-level cache, and the rows' next blocks into the first where
// blocks are long. That is spread over the work: only so many lines can be on their
// way.
func (e *env) block(next reg.Register, quants func(e *env)) {
	value, groups, given := e.value, e.values/4, 0
	lines, fetched := (e.lanes*e.size+63)/64, 0
	perRow, fetchedNear := (e.size+63)/64, 0
	if !e.longBlocks() {
		perRow = 0
	}
	e.value = func(group int, v reg.VecVirtual) {
		value(group, v)
		for given++; fetched < lines*given/groups; fetched++ {
			PREFETCHT1(operand.Mem{Base: next, Disp: 64 * fetched})
		}
		for ; fetchedNear < perRow*e.lanes*given/groups; fetchedNear++ {
			e.fetchNear(fetchedNear/perRow, fetchedNear%perRow)
		}
	}
	e.scales(e)
	quants(e)
	e.value = value
	ADDQ(operand.U32(e.lanes*e.size), next)
	for i := range e.lanes / 4 {
		ADDQ(operand.U32(e.size), e.row[i])
	}
}

// fetchNear prefetches a line of a row's next block, row by row.
func (e *env) fetchNear(row, line int) {
	if e.near == nil {
		PREFETCHT0(e.at(row/4, row%4, e.size+64*line))
		return
	}
	if line == 0 && row > 0 {
		ADDQ(e.stride, e.near)
	}
	PREFETCHT0(operand.Mem{Base: e.near, Disp: 64 * line})
}

// unpack writes the function that turns blocks into a panel.
func unpack(m *isa, f *format) {
	name := "unpack" + f.name + m.suffix
	TEXT(name, NOSPLIT, "func(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)")
	Pragma("noescape")
	Doc(name + " writes the panel and the scales of a number of blocks of rows stride bytes apart, and prefetches as much from next.")
	m.begin()
	e := newEnv(m, f)
	panel, blocks, next := argument("panel"), argument("blocks"), argument("next")
	e.value = func(group int, v reg.VecVirtual) { VMOVUPS(v, operand.Mem{Base: panel, Disp: 4 * m.lanes * group}) }
	e.done = func(int) {}
	Label("loop")
	e.block(next, f.quants)
	ADDQ(operand.U32(m.lanes*f.values), panel)
	ADDQ(operand.U32(f.values/f.sub*e.entry()), e.out)
	DECQ(blocks)
	JNZ(operand.LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// lowHalf and highHalf are the float16 in a 32-bit word.
func (e *env) lowHalf(v operand.Op) reg.VecVirtual  { return e.halves(e.and(v, e.word(0xffff))) }
func (e *env) highHalf(v operand.Op) reg.VecVirtual { return e.halves(e.shift(v, 16)) }

// nibbles gives the eight groups of 32 values whose lower and upper four bits lie
// at disp, changed by what change makes of them.
func (e *env) nibbles(disp int, change func(group int, v reg.VecVirtual) reg.VecVirtual) {
	mask := e.octets(15)
	for c, v := range e.words(disp) {
		e.value(c, change(c, e.and(v, mask)))
		e.value(c+4, change(c+4, e.and(e.shift(v, 4), mask)))
	}
	e.done(0)
}

// table is a change of four bits into the signed value that they stand for.
func (e *env) table(values [16]int8) func(int, reg.VecVirtual) reg.VecVirtual {
	var p [16]byte
	for i, v := range values {
		p[i] = byte(int(v) + e.bias)
	}
	t := e.quarters(p)
	return func(_ int, v reg.VecVirtual) reg.VecVirtual {
		out := e.vec()
		VPSHUFB(v, t, out)
		return out
	}
}

// less is an unsigned number without the format's offset.
func (e *env) less(v reg.VecVirtual) reg.VecVirtual {
	if e.bias == e.offset {
		return v
	}
	return e.addBytes(v, e.octets(byte(e.bias-e.offset)))
}

// fifth is a change that adds bit i of the words of high as the fifth bit of value i.
func (e *env) fifth(high operand.Op) func(group int, v reg.VecVirtual) reg.VecVirtual {
	bit := e.octets(16)
	return func(group int, v reg.VecVirtual) reg.VecVirtual {
		var spread, which [16]byte
		for i := range 16 {
			spread[i] = byte(i/4*4 + group/2)
			which[i] = 1 << (group%2*4 + i%4)
		}
		ones := e.constant(which)
		found := e.and(e.shuffle(high, e.constant(spread)), ones)
		if e.wide() {
			k := K()
			VPCMPEQB(ones, found, k)
			VPADDB(bit, v, k, v)
			return v
		}
		VPCMPEQB(ones, found, found)
		return e.join(v, found, bit)
	}
}

func same(_ int, v reg.VecVirtual) reg.VecVirtual { return v }

var iq4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// formats are the block formats. The layouts are ggml's.
var formats = []*format{
	{name: "Q4_0", size: 18, values: 32, sub: 32, signed: true, offset: 8,
		scales: func(e *env) { e.scale(0, e.lowHalf(e.words(0, 0)[0])) },
		quants: func(e *env) {
			e.nibbles(2, func(_ int, v reg.VecVirtual) reg.VecVirtual { return e.less(v) })
		}},
	{name: "Q4_1", size: 20, values: 32, sub: 32,
		scales: scaleAndLow,
		quants: func(e *env) { e.nibbles(4, same) }},
	{name: "Q5_0", size: 22, values: 32, sub: 32, signed: true, offset: 16,
		scales: func(e *env) { e.scale(0, e.lowHalf(e.words(0, 0)[0])) },
		quants: func(e *env) {
			c := e.words(0, 0, 1)
			high := e.or(e.shift(c[0], 16), e.shift(c[1], -16))
			bit := e.fifth(high)
			e.nibbles(6, func(group int, v reg.VecVirtual) reg.VecVirtual { return e.less(bit(group, v)) })
		}},
	{name: "Q5_1", size: 24, values: 32, sub: 32,
		scales: scaleAndLow,
		quants: func(e *env) { e.nibbles(8, e.fifth(e.words(0, 1)[1])) }},
	{name: "Q8_0", size: 34, values: 32, sub: 32, signed: true,
		scales: func(e *env) { e.scale(0, e.lowHalf(e.words(0, 0)[0])) },
		quants: func(e *env) {
			sign := e.octets(0x80)
			for half := range 2 {
				for c, v := range e.words(2 + 16*half) {
					if e.wide() {
						v = e.xor(v, sign)
					}
					e.value(4*half+c, v)
				}
			}
			e.done(0)
		}},
	{name: "IQ4_NL", size: 18, values: 32, sub: 32, signed: true,
		scales: func(e *env) { e.scale(0, e.lowHalf(e.words(0, 0)[0])) },
		quants: func(e *env) { e.nibbles(2, e.table(iq4)) }},
	{name: "MXFP4", size: 17, values: 32, sub: 32, signed: true,
		scales: func(e *env) { e.scale(0, e.powers(e.and(e.words(0, 0)[0], e.word(0xff)))) },
		quants: func(e *env) {
			e.nibbles(1, e.table([16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}))
		}},
	{name: "Q2_K", size: 84, values: 256, sub: 16, scales: scalesQ2, quants: func(e *env) {
		mask := e.octets(3)
		for half := range 2 {
			for part := range 2 {
				for c, v := range e.words(16 + 32*half + 16*part) {
					for shift := range 4 {
						e.value(32*half+8*shift+4*part+c, e.and(e.shift(v, 2*shift), mask))
					}
				}
			}
			for i := range 8 {
				e.done(8*half + i)
			}
		}
	}},
	{name: "Q3_K", size: 110, values: 256, sub: 16, signed: true, offset: 4, scales: scalesQ3, quants: func(e *env) {
		mask, bit := e.octets(3), e.octets(4)
		for half := range 2 {
			for part := range 2 {
				high := e.words(16 * part)
				for c, v := range e.words(32 + 32*half + 16*part) {
					for shift := range 4 {
						low := e.and(e.shift(v, 2*shift), mask)
						e.value(32*half+8*shift+4*part+c, e.less(e.join(low, e.shift(high[c], 4*half+shift-2), bit)))
					}
				}
			}
			for i := range 8 {
				e.done(8*half + i)
			}
		}
	}},
	{name: "Q4_K", fuse: fuseQ4_K, size: 144, values: 256, sub: 32, scales: scalesK4, quants: func(e *env) {
		mask := e.octets(15)
		for pair := range 4 {
			for part := range 2 {
				for c, v := range e.words(16 + 32*pair + 16*part) {
					e.value(16*pair+4*part+c, e.and(v, mask))
					e.value(16*pair+8+4*part+c, e.and(e.shift(v, 4), mask))
				}
			}
			e.done(2 * pair)
			e.done(2*pair + 1)
		}
	}},
	{name: "Q5_K", fuse: fuseQ5_K, size: 176, values: 256, sub: 32, scales: scalesK4, quants: func(e *env) {
		mask, bit := e.octets(15), e.octets(16)
		for pair := range 4 {
			for part := range 2 {
				high := e.words(16 + 16*part)
				for c, v := range e.words(48 + 32*pair + 16*part) {
					e.value(16*pair+4*part+c, e.join(e.and(v, mask), e.shift(high[c], 2*pair-4), bit))
					e.value(16*pair+8+4*part+c, e.join(e.and(e.shift(v, 4), mask), e.shift(high[c], 2*pair-3), bit))
				}
			}
			e.done(2 * pair)
			e.done(2*pair + 1)
		}
	}},
	{name: "Q6_K", fuse: fuseQ6_K, size: 210, values: 256, sub: 16, signed: true, offset: 32, scales: scalesQ6, quants: func(e *env) {
		mask, bits := e.octets(15), e.octets(0x30)
		for half := range 2 {
			for part := range 2 {
				l0, l1 := e.words(64*half+16*part), e.words(64*half+32+16*part)
				for c, h := range e.words(128 + 32*half + 16*part) {
					at := 32*half + 4*part + c
					e.value(at, e.less(e.join(e.and(l0[c], mask), e.shift(h, -4), bits)))
					e.value(at+8, e.less(e.join(e.and(l1[c], mask), e.shift(h, -2), bits)))
					e.value(at+16, e.less(e.join(e.and(e.shift(l0[c], 4), mask), h, bits)))
					e.value(at+24, e.less(e.join(e.and(e.shift(l1[c], 4), mask), e.shift(h, 2), bits)))
				}
			}
			for i := range 8 {
				e.done(8*half + i)
			}
		}
	}},
	{name: "IQ4_XS", size: 136, values: 256, sub: 32, signed: true, scales: scalesIQ4, quants: func(e *env) {
		mask, value := e.octets(15), e.table(iq4)
		for sub := range 8 {
			for c, v := range e.words(8 + 16*sub) {
				e.value(8*sub+c, value(0, e.and(v, mask)))
				e.value(8*sub+4+c, value(0, e.and(e.shift(v, 4), mask)))
			}
			e.done(sub)
		}
	}},
}

func scaleAndLow(e *env) {
	c := e.words(0, 0)[0]
	e.scale(0, e.lowHalf(c))
	e.low(0, e.highHalf(c))
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
		VMOVDQA32(e.word(0x7fc00000), k, out)
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

// scalesK4 unpacks the scales and minima, six bits each, of Q4_K and Q5_K.
func scalesK4(e *env) {
	c := e.words(0)
	d, low := e.lowHalf(c[0]), e.highHalf(c[0])
	low = e.xor(low, e.word(1<<31))
	six, four, two := e.octets(63), e.octets(15), e.octets(0x30)
	for i, v := range []struct{ scales, lows reg.VecVirtual }{
		{e.and(c[1], six), e.and(c[2], six)},
		{e.join(e.and(c[3], four), e.shift(c[1], 2), two), e.join(e.and(e.shift(c[3], 4), four), e.shift(c[2], 2), two)},
	} {
		for j := range 4 {
			e.scale(4*i+j, e.mul(d, e.floats(e.byteAt(v.scales, j))))
			e.low(4*i+j, e.mul(low, e.floats(e.byteAt(v.lows, j))))
		}
	}
}

func scalesQ2(e *env) {
	c := e.words(68, 3)[3]
	d, low := e.lowHalf(c), e.highHalf(c)
	low = e.xor(low, e.word(1<<31))
	four := e.octets(15)
	for i, v := range e.words(0) {
		s, m := e.and(v, four), e.and(e.shift(v, 4), four)
		for j := range 4 {
			e.scale(4*i+j, e.mul(d, e.floats(e.byteAt(s, j))))
			e.low(4*i+j, e.mul(low, e.floats(e.byteAt(m, j))))
		}
	}
}

// scalesQ3 unpacks six bits: four of the first eight bytes, two of the last four.
func scalesQ3(e *env) {
	z := e.pieces(94) // the scales begin at 96; a block has 110 bytes
	for _, v := range z {
		VPSRLDQ(operand.U8(2), v, v)
	}
	c := e.columns(z)
	d := e.lowHalf(c[3])
	four, two, less := e.octets(15), e.octets(0x30), e.word(32)
	for i := range 4 {
		v := e.join(e.and(e.shift(c[i%2], i/2*4), four), e.shift(c[2], 2*i-4), two)
		for j := range 4 {
			e.scale(4*i+j, e.mul(d, e.floats(e.subWords(e.byteAt(v, j), less))))
		}
	}
}

func scalesQ6(e *env) {
	d := e.highHalf(e.words(194, 3)[3])
	for i, v := range e.words(192) {
		for j := range 4 {
			e.scale(4*i+j, e.mul(d, e.floats(e.signedByte(v, j))))
		}
	}
}

func scalesIQ4(e *env) {
	c := e.words(0, 0, 1)
	d, high := e.lowHalf(c[0]), e.shift(c[0], 16)
	four, two, less := e.word(15), e.word(0x30), e.word(32)
	for i := range 8 {
		v := e.join(e.and(e.shift(c[1], 4*i), four), e.shift(high, 2*i-4), two)
		e.scale(i, e.mul(d, e.floats(e.subWords(v, less))))
	}
}
