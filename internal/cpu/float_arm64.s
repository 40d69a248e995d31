#include "textflag.h"
#include "instructions_arm64.h"

// Products of rows of float32, and of rows of weights as they are stored. Each is
// summed in the lanes of one register in ascending order, whatever the function, so
// that its bits are those of all the others.
//
// For one token:
//
//	R0-R7    rows of weights     V0, V1    8 activations
//	R8       activations         V8-V15    weights of rows 0 to 7
//	R9       where in a row      V16-V23   these as float32
//	R10      bytes of a row      V24-V31   sums
//	R11      bytes left          R14       from a row's end to the row 8 below

#define EACHROW(MACRO) \
	MACRO(0); \
	MACRO(1); \
	MACRO(2); \
	MACRO(3); \
	MACRO(4); \
	MACRO(5); \
	MACRO(6); \
	MACRO(7)

#define WEIGHT(r) (8+(r))
#define FLOAT(r) (16+(r))
#define SUM(r) (24+(r))

#define ZERO(r) ZERO16(SUM(r))

// LOAD8 and LOAD16 load so many bytes of a row.
#define LOAD8(r) LDDX(WEIGHT(r), r, 9)
#define LOAD16(r) LDQX(WEIGHT(r), r, 9)
// PREFETCH asks for the line R12 bytes behind the beginning of a row.
#define PREFETCH(r) PRFMX(r, 12)

// MULTIPLY adds the products of four weights that are float32, MULTIPLYF16 and
// MULTIPLYBF16 those of four that are 16 bits each, and with BY8 of eight.
#define MULTIPLY(r) FMLA4(SUM(r), WEIGHT(r), 0)
#define MULTIPLYF16(r) \
	FCVTLHS(FLOAT(r), WEIGHT(r)); \
	FMLA4(SUM(r), FLOAT(r), 0)
#define MULTIPLYF16BY8(r) \
	MULTIPLYF16(r); \
	FCVTL2HS(WEIGHT(r), WEIGHT(r)); \
	FMLA4(SUM(r), WEIGHT(r), 1)
#define MULTIPLYBF16(r) \
	SHLLHS(FLOAT(r), WEIGHT(r)); \
	FMLA4(SUM(r), FLOAT(r), 0)
#define MULTIPLYBF16BY8(r) \
	MULTIPLYBF16(r); \
	SHLL2HS(WEIGHT(r), WEIGHT(r)); \
	FMLA4(SUM(r), WEIGHT(r), 1)

// FOUR adds the products of four elements, EIGHT those of eight that are 16 bits each.
#define FOUR(LOAD, MULTIPLY, bytes) \
	LDQ(0, 8, 0); \
	EACHROW(LOAD); \
	EACHROW(MULTIPLY); \
	ADD $16, R8; \
	ADD $bytes, R9
#define EIGHT(MULTIPLY) \
	LDQ(0, 8, 0); \
	LDQ(1, 8, 16); \
	EACHROW(LOAD16); \
	EACHROW(MULTIPLY); \
	ADD $32, R8; \
	ADD $16, R9

#define FOURF32 FOUR(LOAD16, MULTIPLY, 16)
#define FOURF16 FOUR(LOAD8, MULTIPLYF16, 8)
#define FOURBF16 FOUR(LOAD8, MULTIPLYBF16, 8)

// ROWS are eight rows R12 bytes apart.
#define ROWS \
	MOVD w+8(FP), R0; \
	ADD  R12, R0, R1; \
	ADD  R12, R1, R2; \
	ADD  R12, R2, R3; \
	ADD  R12, R3, R4; \
	ADD  R12, R4, R5; \
	ADD  R12, R5, R6; \
	ADD  R12, R6, R7; \
	MOVD x+16(FP), R8; \
	MOVD $0, R9; \
	EACHROW(ZERO)

// ADDED is the sums of the lanes of a, b, c and d, the lanes of a then.
#define ADDED(a, b, c, d) \
	FADDPAIRS(a, a, b); \
	FADDPAIRS(c, c, d); \
	FADDPAIRS(a, a, c)

#define RESULTS \
	MOVD dst+0(FP), R15; \
	ADDED(24, 25, 26, 27); \
	ADDED(28, 29, 30, 31); \
	STQ(24, 15, 0); \
	STQ(28, 15, 16)

// STORED is a function. A line of every row, 64 bytes, is four times LINE; of what is
// left REST takes size bytes, four elements.
#define STORED(LINE, REST, shift, size) \
	MOVD n+24(FP), R10; \
	LSL  $shift, R10; \
	MOVD R10, R11; \
	MOVD stride+32(FP), R12; \
	LSL  $3, R12, R14; \
	SUB  R12, R14; \
	ROWS; \
	CMP  $64, R11; \
	BLT  last; \
line: \
	ADD  $256, R9, R12; \
	ADD  R12, R14, R13; \
	CMP  R10, R12; \
	CSEL LT, R12, R13, R12; \
	EACHROW(PREFETCH); \
	LINE; \
	LINE; \
	LINE; \
	LINE; \
	SUB  $64, R11; \
	CMP  $64, R11; \
	BGE  line; \
last: \
	CBZ  R11, done; \
rest: \
	REST; \
	SUBS $size, R11; \
	BNE  rest; \
done: \
	RESULTS; \
	RET

// func dot8F32NEON(dst *float32, w *byte, x *float32, n, stride int)
TEXT ·dot8F32NEON(SB), NOSPLIT, $0-40
	STORED(FOURF32, FOURF32, 2, 16)

// func dot8F16NEON(dst *float32, w *byte, x *float32, n, stride int)
TEXT ·dot8F16NEON(SB), NOSPLIT, $0-40
	STORED(EIGHT(MULTIPLYF16BY8), FOURF16, 1, 8)

// func dot8BF16NEON(dst *float32, w *byte, x *float32, n, stride int)
TEXT ·dot8BF16NEON(SB), NOSPLIT, $0-40
	STORED(EIGHT(MULTIPLYBF16BY8), FOURBF16, 1, 8)

// func dot8x1NEON(dst, w, x *float32, n, stride int)
TEXT ·dot8x1NEON(SB), NOSPLIT, $0-40
	MOVD n+24(FP), R11
	MOVD stride+32(FP), R12
	LSL  $2, R12
	ROWS

four:
	FOURF32
	SUBS $4, R11
	BNE  four
	RESULTS
	RET

// For four tokens:
//
//	R0-R3   rows of weights       V0-V3     weights
//	R4-R7   rows of activations   V4-V7     activations
//	R9      where in a row        V16-V19   sums of token 0 and the rows
//	R11     elements left         V20-V31   those of tokens 1 to 3

#define LOAD(r) LDQX(r, r, 9)
#define TIMES(w, token) FMLA4(16+4*(token)+(w), w, 4+(token))
#define TOKEN(token) \
	TIMES(0, token); \
	TIMES(1, token); \
	TIMES(2, token); \
	TIMES(3, token)
#define ZERO4(token) \
	ZERO16(16+4*(token)); \
	ZERO16(17+4*(token)); \
	ZERO16(18+4*(token)); \
	ZERO16(19+4*(token))
#define RESULTS4(token) \
	ADDED(16+4*(token), 17+4*(token), 18+4*(token), 19+4*(token)); \
	STQ(16+4*(token), 15, 32*(token))

#define EACHTOKEN(MACRO) \
	MACRO(0); \
	MACRO(1); \
	MACRO(2); \
	MACRO(3)

// func dot4x4NEON(dst, w, x *float32, n, stride int)
TEXT ·dot4x4NEON(SB), NOSPLIT, $0-40
	MOVD n+24(FP), R11
	MOVD stride+32(FP), R12
	LSL  $2, R12
	MOVD w+8(FP), R0
	ADD  R12, R0, R1
	ADD  R12, R1, R2
	ADD  R12, R2, R3
	MOVD x+16(FP), R4
	ADD  R12, R4, R5
	ADD  R12, R5, R6
	ADD  R12, R6, R7
	MOVD $0, R9
	EACHTOKEN(ZERO4)

four:
	EACHROW(LOAD)
	EACHTOKEN(TOKEN)
	ADD  $16, R9
	SUBS $4, R11
	BNE  four
	MOVD dst+0(FP), R15
	EACHTOKEN(RESULTS4)
	RET
