package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the parts of a record's block lie, as package cpu defines it.
const (
	recordD     = 32
	recordN32   = 36
	recordM32   = 40
	recordN16   = 48
	recordM16   = 56
	recordBlock = 64
)

// quantized writes the kernels for products of quantised weights and records.
func quantized() {
	for _, m := range []*isa{avx512, avx2} {
		for _, f := range formats {
			unpack(m, f)
			if m.wide() {
				fused(m, f)
			}
		}
		for _, sub := range []int{32, 16} {
			for _, signed := range []bool{true, false} {
				if m.wide() {
					for _, tokens := range []int{1, 2, 4, 6} {
						multiply(m, sub, signed, 2, tokens)
					}
				} else {
					for _, tokens := range []int{1, 2, 4} {
						multiply(m, sub, signed, 1, tokens)
					}
				}
			}
		}
	}
}

// sums begins the integer sums of piece part of a record's block: with what makes
// up for the panel's bias, -128 times the sum of the record's values divided by
// 2^shift.
func (m *isa) sums(x operand.Mem, sub, part int, signed bool, shift operand.Op) reg.VecVirtual {
	if !signed || !m.wide() {
		return m.zero()
	}
	n := recordN32
	if sub == 16 {
		n = recordN16 + 4*part
	}
	v := m.everywhere(x.Offset(n))
	if shift != nil {
		VPSRAD(shift, v, v)
	}
	return v
}

// add adds the piece's integer sums, scaled, to total, and the minimum's share
// where there is one.
func (m *isa) add(total, sums reg.VecVirtual, x operand.Mem, sub, part int, scale reg.VecVirtual, low operand.Op) {
	d, low32 := x.Offset(recordD), x.Offset(recordM32)
	if sub == 16 {
		low32 = x.Offset(recordM16 + 4*part)
	}
	f := m.vec()
	VCVTDQ2PS(sums, sums)
	if m.wide() {
		VMULPS_BCST(d, scale, f)
	} else {
		VBROADCASTSS(d, f)
		VMULPS(f, scale, f)
	}
	VFMADD231PS(f, sums, total)
	if low == nil {
		return
	}
	if m.wide() {
		VFMADD231PS_BCST(low32, low, total)
		return
	}
	f = m.vec()
	VBROADCASTSS(low32, f)
	VFMADD231PS(low, f, total)
}

// multiply writes the function that multiplies panels, side by side, with tokens
// records.
func multiply(m *isa, sub int, signed bool, panels, tokens int) {
	kind := "Low"
	if signed {
		kind = "Signed"
	}
	name := fmt.Sprintf("multiply%s%dx%d%s", kind, sub, tokens, m.suffix)
	TEXT(name, NOSPLIT, "func(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)")
	Pragma("noescape")
	Doc(name+" adds to totals [tokens, rows] the products of a number of blocks of 32 values, signed ones",
		"biased by 128>>shift in the panels.")
	panel, scales, x := argument("panel"), argument("scales"), argument("x")
	panelBytes, scaleBytes, stride := argument("panelBytes"), argument("scaleBytes"), argument("stride")
	if panels == 1 {
		panelBytes, scaleBytes = nil, nil
	}
	blocks := argument("blocks")
	fourth := reg.Register(nil)
	if tokens > 3 {
		fourth = GP64()
		LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, fourth)
		ADDQ(x, fourth)
	}
	at := func(t int) operand.Mem {
		a := operand.Mem{Base: x}
		if t >= 3 {
			a.Base = fourth
		}
		if t%3 > 0 {
			a.Index, a.Scale = stride, uint8(t%3)
		}
		return a
	}
	place := func(base, other reg.Register, p, disp int) operand.Mem {
		a := operand.Mem{Base: base, Disp: disp}
		if p > 0 {
			a.Index, a.Scale = other, 1
		}
		return a
	}
	var shift operand.Op
	if m.wide() && signed {
		count := XMM()
		VMOVQ(argument("shift"), count)
		shift = count
	}
	totals := argument("totals")
	total := func(t, p int) operand.Mem {
		return operand.Mem{Base: totals, Disp: 4 * m.lanes * (t*panels + p)}
	}
	// The totals stay in registers where there are enough.
	var kept []reg.VecVirtual
	if m.wide() {
		for t := range tokens {
			for p := range panels {
				kept = append(kept, m.load(total(t, p)))
			}
		}
	}
	var one operand.Op
	if !m.wide() {
		one = m.word(0x00010001)
	}
	entry := 4 * m.lanes
	if !signed {
		entry *= 2
	}
	Label("loop")
	for part := range 32 / sub {
		sums := make([]reg.VecVirtual, tokens*panels)
		for t := range tokens {
			first := m.sums(at(t), sub, part, signed, shift)
			sums[t*panels] = first
			for p := 1; p < panels; p++ {
				sums[t*panels+p] = m.vec()
				VMOVDQA32(first, sums[t*panels+p])
			}
		}
		for g := range sub / 4 {
			group := part*sub/4 + g
			var w, size [2]reg.VecVirtual
			for p := range panels {
				w[p] = m.load(place(panel, panelBytes, p, 4*m.lanes*group))
				if size[p] = w[p]; signed && !m.wide() {
					size[p] = m.vec()
					VPABSB(w[p], size[p])
				}
			}
			for t := range tokens {
				v := m.everywhere(at(t).Offset(4 * group))
				for p := range panels {
					m.products(sums[t*panels+p], w[p], size[p], v, one, signed)
				}
			}
		}
		for p := range panels {
			scale := m.load(place(scales, scaleBytes, p, part*entry))
			var low operand.Op
			if !signed {
				low = m.load(place(scales, scaleBytes, p, part*entry+4*m.lanes))
			}
			for t := range tokens {
				if kept != nil {
					m.add(kept[t*panels+p], sums[t*panels+p], at(t), sub, part, scale, low)
					continue
				}
				to := m.load(total(t, p))
				m.add(to, sums[t*panels+p], at(t), sub, part, scale, low)
				VMOVUPS(to, total(t, p))
			}
		}
	}
	ADDQ(operand.U32(4*m.lanes*8), panel)
	ADDQ(operand.U32(32/sub*entry), scales)
	ADDQ(operand.U32(recordBlock), x)
	if tokens > 3 {
		ADDQ(operand.U32(recordBlock), fourth)
	}
	DECQ(blocks)
	JNZ(operand.LabelRef("loop"))
	for i, v := range kept {
		VMOVUPS(v, total(i/panels, i%panels))
	}
	VZEROUPPER()
	RET()
}

// products adds the four products of each lane's bytes to sums. AVX2 multiplies
// magnitudes with values of the other's sign: its instruction adds two products in
// 16 bits, which hold 2*128*127 and no more.
func (m *isa) products(sums, w, size, x reg.VecVirtual, one operand.Op, signed bool) {
	if m.wide() {
		VPDPBUSD(x, w, sums)
		return
	}
	v := x
	if signed {
		v = m.vec()
		VPSIGNB(w, x, v)
	}
	p := m.vec()
	VPMADDUBSW(v, size, p)
	VPMADDWD(one, p, p)
	VPADDD(p, sums, sums)
}
