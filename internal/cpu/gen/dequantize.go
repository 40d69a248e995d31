package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions of this file write the float32 values of weights, eight at a time, with the same
// operations as package tensor: a rounded product, then a rounded difference. So the bits are the
// same.

// start begins a function whose parameters are pointers and ints.
func start(name, signature string, doc ...string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc...)
}

func argument(name string) reg.Register { return Load(Param(name), GP64()) }

func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// repeat counts n down to zero around body.
func repeat(n reg.Register, body func()) {
	Label("loop")
	body()
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// integers returns a register with v in all eight lanes.
func integers(v uint32) reg.VecVirtual {
	g, x, y := GP32(), XMM(), YMM()
	MOVL(operand.U32(v), g)
	VMOVD(g, x)
	VPBROADCASTD(x, y)
	return y
}

// half returns a register with the float16 at m in all eight lanes.
func half(m operand.Mem) reg.VecVirtual {
	x, y := XMM(), YMM()
	VPBROADCASTW(m, x)
	VCVTPH2PS(x, y)
	return y
}

// lanes returns a register with the float32 at m in all eight lanes.
func lanes(m operand.Mem) reg.VecVirtual {
	y := YMM()
	VBROADCASTSS(m, y)
	return y
}

// bytes returns eight bytes as integers.
func bytes(m operand.Mem) reg.VecVirtual {
	y := YMM()
	VPMOVZXBD(m, y)
	return y
}

func and(v, mask reg.VecVirtual) reg.VecVirtual {
	y := YMM()
	VPAND(v, mask, y)
	return y
}

func or(v, w reg.VecVirtual) reg.VecVirtual {
	y := YMM()
	VPOR(v, w, y)
	return y
}

func right(v reg.VecVirtual, n uint64) reg.VecVirtual {
	if n == 0 {
		return v
	}
	y := YMM()
	VPSRLD(operand.Imm(n), v, y)
	return y
}

func left(v reg.VecVirtual, n uint64) reg.VecVirtual {
	y := YMM()
	VPSLLD(operand.Imm(n), v, y)
	return y
}

// minus returns v - w for integers.
func minus(v, w reg.VecVirtual) reg.VecVirtual {
	y := YMM()
	VPSUBD(w, v, y)
	return y
}

// put writes scale*v, or scale*v - low if low is not nil.
func put(v, scale, low reg.VecVirtual, to operand.Mem) {
	y := YMM()
	VCVTDQ2PS(v, y)
	VMULPS(scale, y, y)
	if low != nil {
		VSUBPS(low, y, y)
	}
	VMOVUPS(y, to)
}

func floats() {
	start("f16AVX2", "func(dst *float32, src *byte, n int)", "f16AVX2 converts 8n float16.")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	y := YMM()
	repeat(n, func() {
		VCVTPH2PS(at(src, 0), y)
		VMOVUPS(y, at(dst, 0))
		ADDQ(operand.Imm(16), src)
		ADDQ(operand.Imm(32), dst)
	})

	start("bf16AVX2", "func(dst *float32, src *byte, n int)", "bf16AVX2 converts 8n bfloat16.")
	dst, src, n = argument("dst"), argument("src"), argument("n")
	y = YMM()
	repeat(n, func() {
		VPMOVZXWD(at(src, 0), y)
		VPSLLD(operand.Imm(16), y, y)
		VMOVUPS(y, at(dst, 0))
		ADDQ(operand.Imm(16), src)
		ADDQ(operand.Imm(32), dst)
	})
}

func q8_0() {
	start("q8_0AVX2", "func(dst *float32, src *byte, n int)", "q8_0AVX2 writes n blocks of 32.")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	repeat(n, func() {
		d := half(at(src, 0))
		for i := 0; i < 32; i += 8 {
			q := YMM()
			VPMOVSXBD(at(src, 2+i), q)
			put(q, d, nil, at(dst, 4*i))
		}
		ADDQ(operand.Imm(34), src)
		ADDQ(operand.Imm(128), dst)
	})
}

func q4_0() {
	start("q4_0AVX2", "func(dst *float32, src *byte, n int)", "q4_0AVX2 writes n blocks of 32.")
	dst, src, n := argument("dst"), argument("src"), argument("n")
	nibble, eight := integers(15), integers(8)
	repeat(n, func() {
		d := half(at(src, 0))
		for i := 0; i < 16; i += 8 {
			q := bytes(at(src, 2+i))
			put(minus(and(q, nibble), eight), d, nil, at(dst, 4*i))
			put(minus(right(q, 4), eight), d, nil, at(dst, 4*(16+i)))
		}
		ADDQ(operand.Imm(18), src)
		ADDQ(operand.Imm(128), dst)
	})
}

func q4_K() {
	start("q4_KAVX2", "func(dst, scales *float32, qs *byte)",
		"q4_KAVX2 writes a block of 256: group g of 32 is scales[2g]*q - scales[2g+1].")
	dst, scales, qs := argument("dst"), argument("scales"), argument("qs")
	nibble := integers(15)
	for pair := range 4 {
		d0, low0 := lanes(at(scales, 16*pair)), lanes(at(scales, 16*pair+4))
		d1, low1 := lanes(at(scales, 16*pair+8)), lanes(at(scales, 16*pair+12))
		for i := 0; i < 32; i += 8 {
			q := bytes(at(qs, 32*pair+i))
			put(and(q, nibble), d0, low0, at(dst, 4*(64*pair+i)))
			put(right(q, 4), d1, low1, at(dst, 4*(64*pair+32+i)))
		}
	}
	VZEROUPPER()
	RET()
}

func q5_K() {
	start("q5_KAVX2", "func(dst, scales *float32, high, qs *byte)",
		"q5_KAVX2 writes a block of 256: group g of 32 is scales[2g]*q - scales[2g+1], bit g of",
		"high the fifth bit of q.")
	dst, scales, high, qs := argument("dst"), argument("scales"), argument("high"), argument("qs")
	nibble, fifth := integers(15), integers(16)
	for pair := range 4 {
		d0, low0 := lanes(at(scales, 16*pair)), lanes(at(scales, 16*pair+4))
		d1, low1 := lanes(at(scales, 16*pair+8)), lanes(at(scales, 16*pair+12))
		for i := 0; i < 32; i += 8 {
			q, h := bytes(at(qs, 32*pair+i)), left(bytes(at(high, i)), 4)
			put(or(and(q, nibble), and(right(h, uint64(2*pair)), fifth)), d0, low0, at(dst, 4*(64*pair+i)))
			put(or(right(q, 4), and(right(h, uint64(2*pair+1)), fifth)), d1, low1, at(dst, 4*(64*pair+32+i)))
		}
	}
	VZEROUPPER()
	RET()
}

func q6_K() {
	start("q6_KAVX2", "func(dst, scales *float32, low, high *byte)",
		"q6_KAVX2 writes a block of 256: group g of 16 is scales[g]*(q-32).")
	dst, scales, low, high := argument("dst"), argument("scales"), argument("low"), argument("high")
	nibble, two, offset := integers(15), integers(0x30), integers(32)
	for part := range 2 {
		for i := 0; i < 32; i += 8 {
			group := 8*part + i/16
			l0, l1 := bytes(at(low, 64*part+i)), bytes(at(low, 64*part+32+i))
			h := bytes(at(high, 32*part+i))
			for k, q := range []reg.VecVirtual{
				or(and(l0, nibble), and(left(h, 4), two)),
				or(and(l1, nibble), and(left(h, 2), two)),
				or(right(l0, 4), and(h, two)),
				or(right(l1, 4), and(right(h, 2), two)),
			} {
				put(minus(q, offset), lanes(at(scales, 4*(group+2*k))), nil, at(dst, 4*(128*part+32*k+i)))
			}
		}
	}
	VZEROUPPER()
	RET()
}
