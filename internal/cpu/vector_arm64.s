#include "textflag.h"
#include "instructions_arm64.h"
#include "sweep_arm64.h"

// ZEROTOTALS begins the totals of sums: V16-V23, and V24 for what is left over at the
// end. TOTAL adds them to V16.
#define ZEROTOTALS \
	ZERO16(16); \
	ZERO16(17); \
	ZERO16(18); \
	ZERO16(19); \
	ZERO16(20); \
	ZERO16(21); \
	ZERO16(22); \
	ZERO16(23); \
	ZERO16(24)
#define TOTAL \
	FADD2(16, 16, 20); \
	FADD2(17, 17, 21); \
	FADD2(18, 18, 22); \
	FADD2(19, 19, 23); \
	FADD2(16, 16, 18); \
	FADD2(17, 17, 19); \
	FADD2(16, 16, 17); \
	FADD2(16, 16, 24); \
	VMOV  V16.D[1], V17.D[0]; \
	FADDD F17, F16

// DOUBLES loads 4 elements as float64, V0 and V1.
#define DOUBLES(LOAD) \
	LOAD(1, 1); \
	FCVTLSD(0, 1); \
	FCVTL2SD(1, 1)

#define SUM4(LOAD, STORE, k) \
	DOUBLES(LOAD); \
	FADD2(16+2*(k), 16+2*(k), 0); \
	FADD2(17+2*(k), 17+2*(k), 1)
#define SUM1 \
	FMOVS.P 4(R1), F0; \
	FCVTSD  F0, F0; \
	FADDD   F0, F24

// func sumNEON(x *float32, n int) float64
TEXT ·sumNEON(SB), NOSPLIT, $0-24
	MOVD x+0(FP), R1
	MOVD n+8(FP), R4
	ZEROTOTALS
	SWEEP4(SUM4, SUM1)
	TOTAL
	FMOVD F16, ret+16(FP)
	RET

// V2 is the center.
#define SQUARES4(LOAD, STORE, k) \
	DOUBLES(LOAD); \
	FSUB2(0, 0, 2); \
	FSUB2(1, 1, 2); \
	FMLA2(16+2*(k), 0, 0); \
	FMLA2(17+2*(k), 1, 1)
#define SQUARES1 \
	FMOVS.P 4(R1), F0; \
	FCVTSD  F0, F0; \
	FSUBD   F2, F0; \
	FMADDD  F0, F24, F0, F24

// func squaresNEON(x *float32, n int, center float64) float64
TEXT ·squaresNEON(SB), NOSPLIT, $0-32
	MOVD  x+0(FP), R1
	MOVD  n+8(FP), R4
	FMOVD center+16(FP), F2
	VDUP  V2.D[0], V2.D2
	ZEROTOTALS
	SWEEP4(SQUARES4, SQUARES1)
	TOTAL
	FMOVD F16, ret+24(FP)
	RET

// V2 is what is multiplied by.
#define SCALE(LOAD, STORE, k) \
	LOAD(0, 1); \
	LOAD(1, 2); \
	FMULLANE(0, 0, 2, 0); \
	FMUL4(0, 0, 1); \
	STORE(0, 0)

// func scaleNEON(y, x, w *float32, n int, by float32)
TEXT ·scaleNEON(SB), NOSPLIT, $0-36
	MOVD  y+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  w+16(FP), R2
	MOVD  n+24(FP), R4
	FMOVS by+32(FP), F2
	SWEEP4(SCALE, ONE(SCALE))
	RET

// V2 is the mean, V3 what is multiplied by.
#define CENTER(LOAD, STORE, k) \
	DOUBLES(LOAD); \
	FSUB2(0, 0, 2); \
	FSUB2(1, 1, 2); \
	FMUL2(0, 0, 3); \
	FMUL2(1, 1, 3); \
	FCVTNDS(0, 0); \
	FCVTN2DS(0, 1); \
	LOAD(4, 2); \
	LOAD(5, 3); \
	FMLA4(5, 0, 4); \
	STORE(5, 0)

// func centerNEON(y, x, w, b *float32, n int, mean, by float64)
TEXT ·centerNEON(SB), NOSPLIT, $0-56
	MOVD  y+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  w+16(FP), R2
	MOVD  b+24(FP), R3
	MOVD  n+32(FP), R4
	FMOVD mean+40(FP), F2
	FMOVD by+48(FP), F3
	VDUP  V2.D[0], V2.D2
	VDUP  V3.D[0], V3.D2
	SWEEP4(CENTER, ONE(CENTER))
	RET

#define ADDED(LOAD, STORE, k) \
	LOAD(0, 1); \
	LOAD(1, 2); \
	FADD4(0, 0, 1); \
	STORE(0, 0)

// func addNEON(y, x, z *float32, n int)
TEXT ·addNEON(SB), NOSPLIT, $0-32
	MOVD y+0(FP), R0
	MOVD x+8(FP), R1
	MOVD z+16(FP), R2
	MOVD n+24(FP), R4
	SWEEP4(ADDED, ONE(ADDED))
	RET

// 0 times infinity or NaN is NaN. V2 is 0.
#define POISON(LOAD, STORE, k) \
	LOAD(0, 1); \
	FMLA4(16+(k), 0, 2)

// POISONED is the sum of V16 to V19.
#define POISONED \
	FADD4(16, 16, 17); \
	FADD4(18, 18, 19); \
	FADD4(16, 16, 18); \
	FADDPAIRS(16, 16, 16); \
	FADDPAIRS(16, 16, 16)

// func poisonNEON(x *float32, n int) float32
TEXT ·poisonNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R1
	MOVD n+8(FP), R4
	ZERO16(2)
	ZERO16(16)
	ZERO16(17)
	ZERO16(18)
	ZERO16(19)
	SWEEP4(POISON, ONE(POISON))
	POISONED
	FMOVS F16, ret+16(FP)
	RET

// MAXIMA16 are the maxima of 16 elements, in the lanes of d.
#define MAXIMA16(d) \
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]; \
	FMLA4(16, 4, 2); \
	FMLA4(17, 5, 2); \
	FMLA4(18, 6, 2); \
	FMLA4(19, 7, 2); \
	FMAX4(4, 4, 5); \
	FMAX4(6, 6, 7); \
	FMAX4(d, 4, 6)

// func maximaNEON(dst, x *float32, blocks int) float32
TEXT ·maximaNEON(SB), NOSPLIT, $0-28
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD blocks+16(FP), R4
	ZERO16(2)
	ZERO16(16)
	ZERO16(17)
	ZERO16(18)
	ZERO16(19)

block:
	MAXIMA16(20)
	MAXIMA16(21)
	MAXIMA16(22)
	MAXIMA16(23)
	FMAX4(20, 20, 21)
	FMAX4(22, 22, 23)
	FMAX4(20, 20, 22)
	FMAXLANES(20, 20)
	STSNEXT(20, 0)
	SUBS $1, R4
	BNE  block
	POISONED
	FMOVS F16, ret+24(FP)
	RET

// R0 and R1 are at the lower halves of a head, R5 and R6 at the upper.
#define HALVES(LOAD, STORE, k) \
	LOAD(0, 1); \
	LOAD(1, 6); \
	LOAD(2, 2); \
	LOAD(3, 3); \
	FMUL4(4, 0, 2); \
	FMUL4(5, 1, 2); \
	FMLS4(4, 1, 3); \
	FMLA4(5, 0, 3); \
	STORE(4, 0); \
	STORE(5, 5)

// func rotateHalvesNEON(y, x, cos, sin *float32, n, heads, dim int)
TEXT ·rotateHalvesNEON(SB), NOSPLIT, $0-56
	MOVD y+0(FP), R8
	MOVD x+8(FP), R9
	MOVD cos+16(FP), R10
	MOVD sin+24(FP), R11
	MOVD n+32(FP), R12
	MOVD heads+40(FP), R13
	MOVD dim+48(FP), R14

head:
	MOVD R8, R0
	MOVD R9, R1
	MOVD R10, R2
	MOVD R11, R3
	MOVD R12, R4
	ADD  R12<<2, R8, R5
	ADD  R12<<2, R9, R6
	SWEEP(HALVES, ONE(HALVES))
	ADD  R14<<2, R8
	ADD  R14<<2, R9
	SUBS $1, R13
	BNE  head
	RET

// V6 is the sign of the lower element of a pair, from which the product is taken away.
#define NEIGHBOURS(LOAD, STORE) \
	LOAD(0, 1); \
	LOAD(1, 2); \
	LOAD(2, 3); \
	VREV64 V0.S4, V3.S4; \
	FMUL4(0, 0, 1); \
	VEOR V6.B16, V2.B16, V2.B16; \
	FMLA4(0, 3, 2); \
	STORE(0, 0)

// func rotateNeighboursNEON(y, x, cos, sin *float32, n, heads, dim int)
TEXT ·rotateNeighboursNEON(SB), NOSPLIT, $0-56
	MOVD y+0(FP), R8
	MOVD x+8(FP), R9
	MOVD cos+16(FP), R10
	MOVD sin+24(FP), R11
	MOVD n+32(FP), R12
	MOVD heads+40(FP), R13
	MOVD dim+48(FP), R14
	MOVD $0x80000000, R15
	VDUP R15, V6.D2

head:
	MOVD R8, R0
	MOVD R9, R1
	MOVD R10, R2
	MOVD R11, R3
	SUBS $4, R12, R4
	BLT  pair

pairs:
	NEIGHBOURS(LDQNEXT, STQNEXT)
	SUBS $4, R4
	BGE  pairs

pair:
	TBZ $1, R4, next
	NEIGHBOURS(LDDNEXT, STDNEXT)

next:
	ADD  R14<<2, R8
	ADD  R14<<2, R9
	SUBS $1, R13
	BNE  head
	RET
