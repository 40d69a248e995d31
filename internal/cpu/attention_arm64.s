#include "textflag.h"
#include "instructions_arm64.h"
#include "exp_arm64.h"

// scoreStride, in bytes.
#define STRIDE 1088

// What is done for each row is a macro of its number and of how many registers a row
// has.
#define ROWS1(MACRO, n) MACRO(0, n)
#define ROWS2(MACRO, n) ROWS1(MACRO, n); MACRO(1, n)
#define ROWS4(MACRO, n) ROWS2(MACRO, n); MACRO(2, n); MACRO(3, n)
#define ROWS8(MACRO, n) ROWS4(MACRO, n); MACRO(4, n); MACRO(5, n); MACRO(6, n); MACRO(7, n)

#define NONE

// SUM is register i of the sums of a row, of which all rows together have 16 at most.
#define SUM(row, n, i) (16+(n)*(row)+(i))

#define ZERO2(row, n) ZERO16(SUM(row, n, 0)); ZERO16(SUM(row, n, 1))
#define ZERO4(row, n) ZERO2(row, n); ZERO16(SUM(row, n, 2)); ZERO16(SUM(row, n, 3))

// PRODUCTS2 and PRODUCTS4 add to the sums of a row the numbers in V0 to V3 by lane i
// of f.
#define PRODUCTS2(row, n, f, i) \
	FMLALANE(SUM(row, n, 0), 0, f, i); \
	FMLALANE(SUM(row, n, 1), 1, f, i)
#define PRODUCTS4(row, n, f, i) \
	PRODUCTS2(row, n, f, i); \
	FMLALANE(SUM(row, n, 2), 2, f, i); \
	FMLALANE(SUM(row, n, 3), 3, f, i)

// LOAD makes numbers of what lies at R7: 8 of them in V0 and V1, or 16 in V0 to V3.
#define LOADF32x8 LDQ(0, 7, 0); LDQ(1, 7, 16)
#define LOADF32x16 LOADF32x8; LDQ(2, 7, 32); LDQ(3, 7, 48)
#define HALVES(d, e) FCVTLHS(d, e); FCVTL2HS(e, e)
#define LOADF16x8 LDQ(1, 7, 0); HALVES(0, 1)
#define LOADF16x16 LDQ(1, 7, 0); LDQ(3, 7, 16); HALVES(0, 1); HALVES(2, 3)
#define BYTES(d, e) SXTLHS(d, e); SXTL2HS(e, e); SCVTF4(d, d); SCVTF4(e, e)
#define LOADQ8x8 LDD(1, 7, 0); SXTLBH(1, 1); BYTES(0, 1)
#define LOADQ8x16 LDQ(3, 7, 0); SXTLBH(1, 3); SXTL2BH(3, 3); BYTES(0, 1); BYTES(2, 3)
// The exponent and the mantissa of an E4M3 number are moved to those of a float16. Its largest bit
// of the exponent is a copy of the sign, and becomes 0.
#define LOADF8x8 LDD(1, 7, 0); SSHLLBH(1, 1, 7); CLEAR14(1); HALVES(0, 1)
#define LOADF8x16 LDQ(3, 7, 0); SSHLLBH(1, 3, 7); SSHLL2BH(3, 3, 7); CLEAR14(1); CLEAR14(3); HALVES(0, 1); HALVES(2, 3)

// Scores. Positions are lanes.
//
//	V0-V3    keys
//	V4-V7    their scales
//	V8, V9   queries
//	V16-V31  scores
//
//	R0, R1   score and q of the first row that is left
//	R2       rows left
//	R3, R4   k and scales of the first position that is left
//	R9       positions left
//	R10      score of the first of them
//	R5       elements left
//	R6-R8    q, k and scales of the next element
//	R11      what is fetched ahead next
//	R12      -1 for the first rows, which fetch ahead, 0 for others
//	R19      by how much that goes on
//	R13-R15  stride, qStride and dim

// QUERIES are those of the rows.
#define QUERIES1 LDS(8, 6, 0)
#define QUERIES2 LDD(8, 6, 0)
#define QUERIES4 LDQ(8, 6, 0)
#define QUERIES8 LDQ(8, 6, 0); LDQ(9, 6, 16)
#define SCORE2(row, n) PRODUCTS2(row, n, 8+(row)/4, (row)%4)
#define SCORE4(row, n) PRODUCTS4(row, n, 8, row)
#define STORESCORES2(row, n) \
	STQ(SUM(row, n, 0), 10, STRIDE*(row)); \
	STQ(SUM(row, n, 1), 10, STRIDE*(row)+16)
#define STORESCORES4(row, n) \
	STORESCORES2(row, n); \
	STQ(SUM(row, n, 2), 10, STRIDE*(row)+32); \
	STQ(SUM(row, n, 3), 10, STRIDE*(row)+48)

// SCALES begins 32 elements of the head, SCALED scales the keys, and MORE goes on
// while there are elements. Only the keys of Q8_0 and F8_E4M3 have scales, in F8_E4M3
// one for all elements.
#define SCALES8 LDQ(5, 8, 0); HALVES(4, 5); ADD R13<<1, R8
#define SCALES16 LDQ(5, 8, 0); LDQ(7, 8, 16); HALVES(4, 5); HALVES(6, 7); ADD R13<<1, R8
#define SCALED8 FMUL4(0, 0, 4); FMUL4(1, 1, 5)
#define SCALED16 SCALED8; FMUL4(2, 2, 6); FMUL4(3, 3, 7)
#define MORE(block, element) SUBS $1, R5; BNE element
#define MORESCALED(block, element) SUB $1, R5; TST $31, R5; BNE element; CBNZ R5, block

// BLOCKSCORES does as many blocks of so many rows as there are, some registers of
// positions at a time.
#define BLOCKSCORES(rows, registers, bytes, EACH, ZEROS, SCALES, LOAD, SCALED, QUERIES, SCORE, MORE, STORE, some, position, block, element, fewer) \
some: \
	CMP  $rows, R2; \
	BLT  fewer; \
	MOVD k+16(FP), R3; \
	MOVD scales+24(FP), R4; \
	MOVD n+56(FP), R9; \
	MOVD R0, R10; \
	AND  $(4*registers*bytes), R12, R19; \
position: \
	EACH(ZEROS, registers); \
	MOVD R1, R6; \
	MOVD R3, R7; \
	MOVD R4, R8; \
	MOVD R15, R5; \
block: \
	SCALES; \
element: \
	LOAD; \
	SCALED; \
	QUERIES; \
	PRFM (R11), PLDL2KEEP; \
	ADD  R19, R11; \
	ADD  R13, R7; \
	ADD  R14, R6; \
	EACH(SCORE, registers); \
	MORE(block, element); \
	EACH(STORE, registers); \
	ADD  $(16*registers), R10; \
	ADD  $(4*registers*bytes), R3; \
	ADD  $(8*registers), R4; \
	SUBS $(4*registers), R9; \
	BGT  position; \
	MOVD $0, R12; \
	ADD  $(4*rows), R1; \
	ADD  $(STRIDE*rows), R0; \
	SUB  $rows, R2; \
	B    some

// SCORES is a function.
#define SCORES(bytes, SCALES8, SCALES16, LOAD8, LOAD16, SCALED8, SCALED16, MORE) \
	MOVD score+0(FP), R0; \
	MOVD q+8(FP), R1; \
	MOVD next+32(FP), R11; \
	MOVD dim+40(FP), R15; \
	MOVD stride+48(FP), R13; \
	MOVD rows+64(FP), R2; \
	MOVD qStride+72(FP), R14; \
	MOVD $-1, R12; \
	BLOCKSCORES(8, 2, bytes, ROWS8, ZERO2, SCALES8, LOAD8, SCALED8, QUERIES8, SCORE2, MORE, STORESCORES2, rows8, position8, block8, element8, rows4); \
	BLOCKSCORES(4, 4, bytes, ROWS4, ZERO4, SCALES16, LOAD16, SCALED16, QUERIES4, SCORE4, MORE, STORESCORES4, rows4, position4, block4, element4, rows2); \
	BLOCKSCORES(2, 4, bytes, ROWS2, ZERO4, SCALES16, LOAD16, SCALED16, QUERIES2, SCORE4, MORE, STORESCORES4, rows2, position2, block2, element2, rows1); \
	BLOCKSCORES(1, 4, bytes, ROWS1, ZERO4, SCALES16, LOAD16, SCALED16, QUERIES1, SCORE4, MORE, STORESCORES4, rows1, position1, block1, element1, none); \
none: \
	RET

// Weighted values. Elements of the head are lanes, 16 of them are in the registers of
// a row.
//
//	V0-V3    values
//	V4-V7    weights of rows 0 to 3
//	V8       the scale of the values
//	V16-V31  sums
//
//	R0, R1   sum and weight of the first row that is left
//	R2       rows left
//	R3, R4   v and scales of the first element that is left
//	R5       elements left
//	R10      sum of the first of them
//	R20-R23  that of rows 0 to 3
//	R9       positions left
//	R6-R8    weight, v and scales of the next position
//	R11      what is fetched ahead next
//	R12      -1 for the first rows, which fetch ahead, 0 for others
//	R19      by how much that goes on
//	R13-R15  stride, sumStride and n

#define LOADSUMS(row, n) \
	LDQ(SUM(row, n, 0), 20+(row), 0); \
	LDQ(SUM(row, n, 1), 20+(row), 16); \
	LDQ(SUM(row, n, 2), 20+(row), 32); \
	LDQ(SUM(row, n, 3), 20+(row), 48)
#define STORESUMS(row, n) \
	STQ(SUM(row, n, 0), 20+(row), 0); \
	STQ(SUM(row, n, 1), 20+(row), 16); \
	STQ(SUM(row, n, 2), 20+(row), 32); \
	STQ(SUM(row, n, 3), 20+(row), 48)

// WEIGHT is the row's for the values at hand. SCALEDWEIGHT is that by their scale:
// of a row's weight there is one, of the values there are 16.
#define WEIGHT(row, n) LDS(4+(row), 6, STRIDE*(row))
#define SCALEDWEIGHT(row, n) WEIGHT(row, n); FMULLANE(4+(row), 4+(row), 8, 0)
#define WEIGHTED(row, n) PRODUCTS4(row, n, 4+(row), 0)

// SCALE is the values' scale, of which a row of v has one for 32 bytes, or with ONESCALE
// one. NEXTSCALE goes on to the next of these where their second half is done.
#define SCALE LDH(8, 8, 0); FCVTLHS(8, 8); ADD R13>>4, R8
#define ONESCALE LDH(8, 8, 0); FCVTLHS(8, 8); ADD $2, R8
#define NEXTSCALE AND $16, R5, R6; EOR $16, R6; ADD R6>>3, R4

// BLOCKWEIGHTED does as many blocks of so many rows, 1<<log of them, as there are.
#define BLOCKWEIGHTED(rows, log, bytes, EACH, LOAD, SCALE, WEIGHT, NEXTSCALE, some, element, position, fewer) \
some: \
	CMP  $rows, R2; \
	BLT  fewer; \
	MOVD v+16(FP), R3; \
	MOVD scales+24(FP), R4; \
	MOVD dim+40(FP), R5; \
	MOVD R0, R10; \
	AND  $(16*bytes), R12, R19; \
element: \
	MOVD R10, R20; \
	ADD  R14, R20, R21; \
	ADD  R14, R21, R22; \
	ADD  R14, R22, R23; \
	EACH(LOADSUMS, 4); \
	MOVD R1, R6; \
	MOVD R3, R7; \
	MOVD R4, R8; \
	MOVD R15, R9; \
position: \
	LOAD; \
	SCALE; \
	EACH(WEIGHT, 4); \
	PRFM (R11), PLDL2KEEP; \
	ADD  R19, R11; \
	ADD  R13, R7; \
	ADD  $4, R6; \
	EACH(WEIGHTED, 4); \
	SUBS $1, R9; \
	BNE  position; \
	EACH(STORESUMS, 4); \
	ADD  $64, R10; \
	ADD  $(16*bytes), R3; \
	SUB  $16, R5; \
	NEXTSCALE; \
	CMP  $0, R5; \
	BGT  element; \
	MOVD $0, R12; \
	ADD  $(STRIDE*rows), R1; \
	ADD  R14<<log, R0; \
	SUB  $rows, R2; \
	B    some

// ADDWEIGHTED is a function.
#define ADDWEIGHTED(bytes, LOAD, SCALE, WEIGHT, NEXTSCALE) \
	MOVD sum+0(FP), R0; \
	MOVD weight+8(FP), R1; \
	MOVD next+32(FP), R11; \
	MOVD stride+48(FP), R13; \
	MOVD n+56(FP), R15; \
	MOVD rows+64(FP), R2; \
	MOVD sumStride+72(FP), R14; \
	MOVD $-1, R12; \
	BLOCKWEIGHTED(4, 2, bytes, ROWS4, LOAD, SCALE, WEIGHT, NEXTSCALE, rows4, element4, position4, rows2); \
	BLOCKWEIGHTED(2, 1, bytes, ROWS2, LOAD, SCALE, WEIGHT, NEXTSCALE, rows2, element2, position2, rows1); \
	BLOCKWEIGHTED(1, 0, bytes, ROWS1, LOAD, SCALE, WEIGHT, NEXTSCALE, rows1, element1, position1, none); \
none: \
	RET

// func scoresF32NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)
TEXT ·scoresF32NEON(SB), NOSPLIT, $0-80
	SCORES(4, NONE, NONE, LOADF32x8, LOADF32x16, NONE, NONE, MORE)

// func scoresF16NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)
TEXT ·scoresF16NEON(SB), NOSPLIT, $0-80
	SCORES(2, NONE, NONE, LOADF16x8, LOADF16x16, NONE, NONE, MORE)

// func scoresQ8NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)
TEXT ·scoresQ8NEON(SB), NOSPLIT, $0-80
	SCORES(1, SCALES8, SCALES16, LOADQ8x8, LOADQ8x16, SCALED8, SCALED16, MORESCALED)

// func scoresF8NEON(score, q *float32, k, scales, next *byte, dim, stride, n, rows, qStride int)
TEXT ·scoresF8NEON(SB), NOSPLIT, $0-80
	SCORES(1, SCALES8, SCALES16, LOADF8x8, LOADF8x16, SCALED8, SCALED16, MORE)

// func weightedF32NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)
TEXT ·weightedF32NEON(SB), NOSPLIT, $0-80
	ADDWEIGHTED(4, LOADF32x16, NONE, WEIGHT, NONE)

// func weightedF16NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)
TEXT ·weightedF16NEON(SB), NOSPLIT, $0-80
	ADDWEIGHTED(2, LOADF16x16, NONE, WEIGHT, NONE)

// func weightedQ8NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)
TEXT ·weightedQ8NEON(SB), NOSPLIT, $0-80
	ADDWEIGHTED(1, LOADQ8x16, SCALE, SCALEDWEIGHT, NEXTSCALE)

// func weightedF8NEON(sum, weight *float32, v, scales, next *byte, dim, stride, n, rows, sumStride int)
TEXT ·weightedF8NEON(SB), NOSPLIT, $0-80
	ADDWEIGHTED(1, LOADF8x16, ONESCALE, SCALEDWEIGHT, NONE)

// func softWeightsNEON(score *float32, n, rows int, top, total *float32)
TEXT ·softWeightsNEON(SB), NOSPLIT, $0-40
	MOVD score+0(FP), R0
	MOVD n+8(FP), R1
	MOVD rows+16(FP), R2
	MOVD top+24(FP), R3
	MOVD total+32(FP), R4
	EXPCONSTANTS

row:
	MOVD R0, R5
	MOVD R1, R6
	LDQ(16, 5, 0)
	MOV16(17, 16)
	MOV16(18, 16)
	MOV16(19, 16)

largest:
	LDQ(0, 5, 0)
	LDQ(1, 5, 16)
	LDQ(2, 5, 32)
	LDQ(3, 5, 48)
	FMAX4(16, 16, 0)
	FMAX4(17, 17, 1)
	FMAX4(18, 18, 2)
	FMAX4(19, 19, 3)
	ADD  $64, R5
	SUBS $16, R6
	BNE  largest
	FMAX4(16, 16, 17)
	FMAX4(18, 18, 19)
	FMAX4(16, 16, 18)
	FMAXLANES(16, 16)
	STS(16, 3, 0)
	DUPFIRST(16, 16)

	MOVD R0, R5
	MOVD R1, R6
	ZERO16(17)

weights:
	LDQ(0, 5, 0)
	FSUB4(0, 0, 16)
	EXP(0, 1, 2, 3, 4)
	STQ(0, 5, 0)
	FADD4(17, 17, 0)
	ADD  $16, R5
	SUBS $4, R6
	BNE  weights
	FADDPAIRS(17, 17, 17)
	FADDPAIRS(17, 17, 17)
	STS(17, 4, 0)

	ADD  $STRIDE, R0
	ADD  $4, R3
	ADD  $4, R4
	SUBS $1, R2
	BNE  row
	RET

// func blendNEON(y, x *float32, n int, a, b float32)
TEXT ·blendNEON(SB), NOSPLIT, $0-32
	MOVD  y+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R2
	FMOVS a+24(FP), F8
	FMOVS b+28(FP), F9

loop:
	LDQ(0, 0, 0)
	LDQ(1, 0, 16)
	LDQ(2, 0, 32)
	LDQ(3, 0, 48)
	LDQ(4, 1, 0)
	LDQ(5, 1, 16)
	LDQ(6, 1, 32)
	LDQ(7, 1, 48)
	FMULLANE(0, 0, 8, 0)
	FMULLANE(1, 1, 8, 0)
	FMULLANE(2, 2, 8, 0)
	FMULLANE(3, 3, 8, 0)
	FMLALANE(0, 4, 9, 0)
	FMLALANE(1, 5, 9, 0)
	FMLALANE(2, 6, 9, 0)
	FMLALANE(3, 7, 9, 0)
	STQ(0, 0, 0)
	STQ(1, 0, 16)
	STQ(2, 0, 32)
	STQ(3, 0, 48)
	ADD  $64, R0
	ADD  $64, R1
	SUBS $16, R2
	BNE  loop
	RET

// func positivesNEON(sum, score, weight *float32, n, rows int)
TEXT ·positivesNEON(SB), NOSPLIT, $0-40
	MOVD sum+0(FP), R0
	MOVD score+8(FP), R1
	MOVD weight+16(FP), R2
	MOVD n+24(FP), R3
	MOVD rows+32(FP), R4
	ZERO16(9)

positions:
	ZERO16(0)
	ZERO16(1)
	ZERO16(2)
	ZERO16(3)
	MOVD R1, R5
	MOVD R2, R6
	MOVD R4, R7

row:
	FMOVS.P 4(R6), F8
	LDQ(4, 5, 0)
	LDQ(5, 5, 16)
	LDQ(6, 5, 32)
	LDQ(7, 5, 48)
	FMAX4(4, 4, 9)
	FMAX4(5, 5, 9)
	FMAX4(6, 6, 9)
	FMAX4(7, 7, 9)
	FMLALANE(0, 4, 8, 0)
	FMLALANE(1, 5, 8, 0)
	FMLALANE(2, 6, 8, 0)
	FMLALANE(3, 7, 8, 0)
	ADD  $STRIDE, R5
	SUBS $1, R7
	BNE  row
	STQ(0, 0, 0)
	STQ(1, 0, 16)
	STQ(2, 0, 32)
	STQ(3, 0, 48)
	ADD  $64, R0
	ADD  $64, R1
	SUBS $16, R3
	BGT  positions
	RET

// func scaleRowNEON(y, x *float32, n int, a float32)
TEXT ·scaleRowNEON(SB), NOSPLIT, $0-28
	MOVD  y+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R2
	FMOVS a+24(FP), F8
	SUBS  $16, R2
	BLT   rest

sixteen:
	LDQ(0, 1, 0)
	LDQ(1, 1, 16)
	LDQ(2, 1, 32)
	LDQ(3, 1, 48)
	FMULLANE(0, 0, 8, 0)
	FMULLANE(1, 1, 8, 0)
	FMULLANE(2, 2, 8, 0)
	FMULLANE(3, 3, 8, 0)
	STQ(0, 0, 0)
	STQ(1, 0, 16)
	STQ(2, 0, 32)
	STQ(3, 0, 48)
	ADD  $64, R0
	ADD  $64, R1
	SUBS $16, R2
	BGE  sixteen

rest:
	ADDS $16, R2
	BEQ  done

one:
	LDS(0, 1, 0)
	FMULLANE(0, 0, 8, 0)
	STS(0, 0, 0)
	ADD  $4, R0
	ADD  $4, R1
	SUBS $1, R2
	BNE  one

done:
	RET

// func halveNEON(y *uint16, x *float32, n int)
TEXT ·halveNEON(SB), NOSPLIT, $0-24
	MOVD y+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R2
	SUBS $8, R2
	BLT  rest

eight:
	LDQ(0, 1, 0)
	LDQ(1, 1, 16)
	FCVTNSH(0, 0)
	FCVTN2SH(0, 1)
	STQ(0, 0, 0)
	ADD  $32, R1
	ADD  $16, R0
	SUBS $8, R2
	BGE  eight

rest:
	ADDS $8, R2
	BEQ  done

one:
	LDS(0, 1, 0)
	FCVTNSH(0, 0)
	STH(0, 0, 0)
	ADD  $4, R1
	ADD  $2, R0
	SUBS $1, R2
	BNE  one

done:
	RET
