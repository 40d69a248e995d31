package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A fuser writes products of blocks and one record without a panel.
//
// Where columns would load 16 bytes of a row at a time, it loads 64: the four
// quarters of a register then hold four pieces of a row, 16 bytes each, and after
// the transposition within the quarters, 32-bit word c of the pieces of four rows.
// The sums of such registers are put in the order of rows at the end of a block.
type fuser struct {
	*env
	x    reg.Register
	down operand.Op // shift of the record's sums, for formats with an offset
	room int        // bytes of scales; the integer sums lie behind them
}

// fused writes the function that multiplies the blocks of as many rows as there
// are lanes with one record.
func fused(m *isa, f *format) {
	name := "fused" + f.name + m.suffix
	TEXT(name, NOSPLIT, "func(totals, scales *float32, x, w *byte, stride, blocks, groups int, next *byte)")
	Pragma("noescape")
	Doc(name+" adds to totals the products of groups of "+fmt.Sprint(m.lanes)+" rows, of a number of blocks and stride bytes each, with record",
		"x; scales is room for the scales of a block, and for a sum each. It prefetches as much from next.")
	m.begin()
	u := &fuser{env: newEnv(m, f), room: f.values / f.sub}
	u.room *= u.entry()
	if f.offset > 0 {
		u.down = operand.U8(bits.TrailingZeros(128 / uint(f.offset)))
	}
	groups, next, totals := argument("groups"), argument("next"), argument("totals")
	Label("group")
	u.x = argument("x")
	blocks := argument("blocks")
	total := m.load(operand.Mem{Base: totals})
	Label("block")
	if u.longBlocks() {
		u.ahead(blocks)
	}
	if f.fuse == nil {
		u.direct(total, next)
	} else {
		u.quartered(total, next)
	}
	ADDQ(operand.U32(f.values/32*recordBlock), u.x)
	DECQ(blocks)
	JNZ(operand.LabelRef("block"))
	VMOVUPS(total, operand.Mem{Base: totals})
	ADDQ(operand.U32(4*m.lanes), totals)
	for i := range m.lanes / 4 { // from the end of a row, the beginning of the next, to the next group
		u.skip(u.row[i])
	}
	DECQ(groups)
	JNZ(operand.LabelRef("group"))
	VZEROUPPER()
	RET()
}

// skip adds all rows of a group but one to p.
func (u *fuser) skip(p reg.Register) {
	for n := u.lanes - 1; n > 0; {
		switch {
		case n >= 12:
			LEAQ(operand.Mem{Base: p, Index: u.three, Scale: 4}, p)
			n -= 12
		case n >= 3:
			ADDQ(u.three, p)
			n -= 3
		default:
			ADDQ(u.stride, p)
			n--
		}
	}
}

// ahead sets near to where the blocks after these begin: beside them, or for the
// last ones in the next group.
func (u *fuser) ahead(blocks reg.Register) {
	u.near = GP64()
	LEAQ(operand.Mem{Base: u.row[0], Disp: u.size}, u.near)
	group := GP64()
	MOVQ(u.near, group)
	u.skip(group)
	CMPQ(blocks, operand.U8(1))
	CMOVQEQ(group, u.near)
}

// record is the record's block of value.
func (u *fuser) record(value int) operand.Mem {
	return operand.Mem{Base: u.x, Disp: value / 32 * recordBlock}
}

// direct multiplies the columns as unpack would write them.
func (u *fuser) direct(total reg.VecVirtual, next reg.Register) {
	sums := map[int]reg.VecVirtual{}
	u.value = func(group int, v reg.VecVirtual) {
		k := 4 * group
		sub, part := k/u.sub, k%32/u.sub
		if sums[sub] == nil {
			sums[sub] = u.sums(u.record(k), u.sub, part, u.format.signed, u.down)
		}
		VPDPBUSD_BCST(u.record(k).Offset(k%32), v, sums[sub])
	}
	u.done = func(sub int) { u.finish(total, sub, sums[sub]) }
	u.block(next, u.quants)
}

// finish adds the scaled sums of piece sub to total.
func (u *fuser) finish(total reg.VecVirtual, sub int, sums reg.VecVirtual) {
	k := sub * u.sub
	scale := u.load(operand.Mem{Base: u.out, Disp: sub * u.entry()})
	var low operand.Op
	if !u.format.signed {
		low = u.load(operand.Mem{Base: u.out, Disp: sub*u.entry() + 4*u.lanes})
	}
	u.add(total, sums, u.record(k), u.sub, k%32/u.sub, scale, low)
}

// quartered multiplies as the format's fuse says, which keeps the sums.
func (u *fuser) quartered(total reg.VecVirtual, next reg.Register) {
	u.value = func(int, reg.VecVirtual) {} // counted, so that prefetches are spread
	u.block(next, func(*env) { u.fuse(u) })
	for sub := range u.values / u.sub {
		k := sub * u.sub
		sums := u.sums(u.record(k), u.sub, k%32/u.sub, u.format.signed, u.down)
		VPADDD(u.kept(sub), sums, sums)
		u.finish(total, sub, sums)
	}
}

// kept is where the integer sums of piece sub lie.
func (u *fuser) kept(sub int) operand.Mem {
	return operand.Mem{Base: u.out, Disp: u.room + 4*u.lanes*sub}
}

// halvesAt loads 32 bytes of a row from either place.
func (u *fuser) halvesAt(i, r, low, high int) reg.VecVirtual {
	v := ZMM()
	if high == low+32 {
		VMOVDQU32(u.at(i, r, low), v)
		return v
	}
	VBROADCASTI64X4(u.at(i, r, low), v)
	if high != low {
		VINSERTI64X4(operand.U8(1), u.at(i, r, high), v, v)
	}
	return v
}

// quads gives words 0 to 3 of the four pieces of rows 4i to 4i+3, two at a time:
// registers are few.
func (u *fuser) quads(i, low, high int, word func(c int, v reg.VecVirtual)) {
	var z [4]reg.VecVirtual
	for r := range z {
		z[r] = u.halvesAt(i, r, low, high)
	}
	for c := 0; c < 4; c += 2 {
		two := u.columns(z, c, c+1)
		word(c, two[c])
		word(c+1, two[c+1])
	}
}

// factors are words 0 to 3 of the values of the record that belong to the four
// pieces: 32 from low on and 32 from high on.
func (u *fuser) factors(low, high int) (x [4]reg.VecVirtual) {
	v := ZMM()
	VBROADCASTI64X4(u.record(low), v)
	VINSERTI64X4(operand.U8(1), u.record(high), v, v)
	for c := range x {
		x[c] = ZMM()
		VPSHUFD(operand.U8(c*0x55), v, x[c])
	}
	return x
}

// multiplied is the sum so far, nil for none, and the product of v and x.
func (u *fuser) multiplied(sum, v, x reg.VecVirtual) reg.VecVirtual {
	if sum == nil {
		sum = u.zero()
	}
	VPDPBUSD(x, v, sum)
	u.value(0, nil)
	return sum
}

func quartersOf(a, b reg.VecVirtual, odd bool) reg.VecVirtual {
	v, which := ZMM(), operand.U8(0x88) // quarters 0 and 2 of either
	if odd {
		which = 0xdd // 1 and 3
	}
	VSHUFI32X4(which, b, a, v)
	return v
}

// pairs keeps sums [4] of rows by fours, whose first two quarters belong to piece
// low and the others to piece high, divided by 2^down, which leaves no rest.
func (u *fuser) pairs(sums [4]reg.VecVirtual, down, low, high int) {
	var half [2]reg.VecVirtual
	for i := range half {
		half[i] = quartersOf(sums[2*i], sums[2*i+1], false)
		VPADDD(quartersOf(sums[2*i], sums[2*i+1], true), half[i], half[i])
		if down > 0 {
			VPSRAD(operand.U8(down), half[i], half[i])
		}
	}
	VMOVDQU32(quartersOf(half[0], half[1], false), u.kept(low))
	VMOVDQU32(quartersOf(half[0], half[1], true), u.kept(high))
}

// fours keeps sums [4] of rows by fours, whose quarters belong to four pieces.
func (u *fuser) fours(sums [4]reg.VecVirtual, pieces [4]int) {
	for odd := range 2 {
		a, b := quartersOf(sums[0], sums[1], odd == 1), quartersOf(sums[2], sums[3], odd == 1)
		VMOVDQU32(quartersOf(a, b, false), u.kept(pieces[odd]))
		VMOVDQU32(quartersOf(a, b, true), u.kept(pieces[odd+2]))
	}
}

// lanewise is a register with a word for the lower half of the lanes and one for
// the upper.
func (u *fuser) lanewise(low, high uint32) reg.VecVirtual {
	v, h := ZMM(), u.everywhere(pattern(words(high)))
	VMOVDQA32(u.everywhere(pattern(words(low))), v)
	VINSERTI64X4(operand.U8(1), h.AsY(), v, v)
	return v
}

func fuseQ4_K(u *fuser) {
	mask, upper := u.octets(15), u.octets(0xf0)
	for half := range 2 {
		xLow, xHigh := u.factors(128*half, 128*half+64), u.factors(128*half+32, 128*half+96)
		var low, high [4]reg.VecVirtual
		for i := range 4 {
			u.quads(i, 16+64*half, 48+64*half, func(c int, v reg.VecVirtual) {
				low[i] = u.multiplied(low[i], u.and(v, mask), xLow[c])
				high[i] = u.multiplied(high[i], u.and(v, upper), xHigh[c])
			})
		}
		u.pairs(low, 0, 4*half, 4*half+2)
		u.pairs(high, 4, 4*half+1, 4*half+3) // the upper halves are 16 times what they stand for
	}
}

func fuseQ5_K(u *fuser) {
	mask, bit := u.octets(15), u.octets(16)
	for half := range 2 {
		xLow, xHigh := u.factors(128*half, 128*half+64), u.factors(128*half+32, 128*half+96)
		// The fifth bits of these pieces are bits 4*half to 4*half+3.
		move := func(v operand.Op, first uint32) reg.VecVirtual {
			out := ZMM()
			if half == 0 {
				VPSLLVD(u.lanewise(4-first, 2-first), v, out)
			} else {
				VPSRLVD(u.lanewise(first, 2+first), v, out)
			}
			return out
		}
		var low, high [4]reg.VecVirtual
		for i := range 4 {
			var fifths [4]reg.VecVirtual
			u.quads(i, 16, 16, func(c int, v reg.VecVirtual) { fifths[c] = v })
			u.quads(i, 48+64*half, 80+64*half, func(c int, v reg.VecVirtual) {
				low[i] = u.multiplied(low[i], u.join(u.and(v, mask), move(fifths[c], 0), bit), xLow[c])
				high[i] = u.multiplied(high[i], u.join(u.and(u.shift(v, 4), mask), move(fifths[c], 1), bit), xHigh[c])
			})
		}
		u.pairs(low, 0, 4*half, 4*half+2)
		u.pairs(high, 0, 4*half+1, 4*half+3)
	}
}

func fuseQ6_K(u *fuser) {
	mask, bits := u.octets(15), u.octets(0x30)
	for part := range 2 { // of the 64 lower halves of either half of the block
		xLow, xHigh := u.factors(32*part, 128+32*part), u.factors(64+32*part, 192+32*part)
		var low, high [4]reg.VecVirtual
		for i := range 4 {
			var tops [4]reg.VecVirtual
			u.quads(i, 128, 160, func(c int, v reg.VecVirtual) { tops[c] = v })
			u.quads(i, 32*part, 64+32*part, func(c int, v reg.VecVirtual) {
				low[i] = u.multiplied(low[i], u.join(u.and(v, mask), u.shift(tops[c], 2*part-4), bits), xLow[c])
				high[i] = u.multiplied(high[i], u.join(u.and(u.shift(v, 4), mask), u.shift(tops[c], 2*part), bits), xHigh[c])
			})
		}
		u.fours(low, [4]int{2 * part, 2*part + 1, 8 + 2*part, 9 + 2*part})
		u.fours(high, [4]int{4 + 2*part, 5 + 2*part, 12 + 2*part, 13 + 2*part})
	}
}
