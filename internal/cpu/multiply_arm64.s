#include "textflag.h"
#include "instructions_arm64.h"

// Products of two panels of 4 rows with 1, 2 or 4 tokens, see quantized.go.
//
//	V0-V7    32 values of the first panel, 4 values of 4 rows each
//	V8-V15   of the second
//	V16-V23  totals: token 0, first and second panel, token 1, ...
//	V24-V27  a block of a record: values, d and m of 32, m of 16
//	V28-V29  sums
//	V30-V31  scales
//
//	R0  totals         R3   scales of the second panel
//	R1  first panel    R4-R7  records
//	R2  its scales     R8   second panel
//	R9  blocks left    R10  bytes of a block of a record

#define ARGUMENTS \
	MOVD totals+0(FP), R0; \
	MOVD panel+8(FP), R1; \
	MOVD panelBytes+16(FP), R8; \
	ADD  R1, R8, R8; \
	MOVD scales+24(FP), R2; \
	MOVD scaleBytes+32(FP), R3; \
	ADD  R2, R3, R3; \
	MOVD x+40(FP), R4; \
	MOVD stride+48(FP), R11; \
	MOVD blocks+56(FP), R9; \
	MOVD $64, R10

#define LOAD1 VLD1 (R0), [V16.B16, V17.B16]
#define STORE1 VST1 [V16.B16, V17.B16], (R0)

#define LOAD2 \
	ADD  R4, R11, R5; \
	VLD1 (R0), [V16.B16, V17.B16, V18.B16, V19.B16]
#define STORE2 VST1 [V16.B16, V17.B16, V18.B16, V19.B16], (R0)

#define LOAD4 \
	ADD  R4, R11, R5; \
	ADD  R5, R11, R6; \
	ADD  R6, R11, R7; \
	ADD  $64, R0, R12; \
	VLD1 (R0), [V16.B16, V17.B16, V18.B16, V19.B16]; \
	VLD1 (R12), [V20.B16, V21.B16, V22.B16, V23.B16]
#define STORE4 \
	VST1 [V16.B16, V17.B16, V18.B16, V19.B16], (R0); \
	VST1 [V20.B16, V21.B16, V22.B16, V23.B16], (R12)

#define PANELS \
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]; \
	VLD1.P 64(R1), [V4.B16, V5.B16, V6.B16, V7.B16]; \
	VLD1.P 64(R8), [V8.B16, V9.B16, V10.B16, V11.B16]; \
	VLD1.P 64(R8), [V12.B16, V13.B16, V14.B16, V15.B16]

#define NOSUMS \
	VEOR V28.B16, V28.B16, V28.B16; \
	VEOR V29.B16, V29.B16, V29.B16

// HALF adds the products of 16 values: panel registers p and q on, values x.
#define HALF(p, q, x) \
	SDOTLANE(28, (p), x, 0); \
	SDOTLANE(29, (q), x, 0); \
	SDOTLANE(28, (p)+1, x, 1); \
	SDOTLANE(29, (q)+1, x, 1); \
	SDOTLANE(28, (p)+2, x, 2); \
	SDOTLANE(29, (q)+2, x, 2); \
	SDOTLANE(28, (p)+3, x, 3); \
	SDOTLANE(29, (q)+3, x, 3)

// SCALED adds the sums to total t and the next one, by the scales at off and d.
#define SCALED(t, off) \
	FMOVQ off(R2), F30; \
	FMOVQ off(R3), F31; \
	SCVTF4(28, 28); \
	SCVTF4(29, 29); \
	FMULLANE(30, 30, 26, 0); \
	FMULLANE(31, 31, 26, 0); \
	FMLA4((t), 28, 30); \
	FMLA4((t)+1, 29, 31)

// LOW adds the minima at off by lane i of m.
#define LOW(t, off, m, i) \
	FMOVQ off(R2), F30; \
	FMOVQ off(R3), F31; \
	FMLALANE((t), 30, m, i); \
	FMLALANE((t)+1, 31, m, i)

#define SIGNED32(x, t) \
	VLD1.P (x)(R10), [V24.B16, V25.B16, V26.B16]; \
	NOSUMS; \
	HALF(0, 8, 24); \
	HALF(4, 12, 25); \
	SCALED(t, 0)

#define LOW32(x, t) \
	SIGNED32(x, t); \
	LOW(t, 16, 26, 2)

#define SIGNED16(x, t) \
	VLD1.P (x)(R10), [V24.B16, V25.B16, V26.B16]; \
	NOSUMS; \
	HALF(0, 8, 24); \
	SCALED(t, 0); \
	NOSUMS; \
	HALF(4, 12, 25); \
	SCALED(t, 16)

#define LOW16(x, t) \
	VLD1.P (x)(R10), [V24.B16, V25.B16, V26.B16, V27.B16]; \
	NOSUMS; \
	HALF(0, 8, 24); \
	SCALED(t, 0); \
	LOW(t, 16, 27, 2); \
	NOSUMS; \
	HALF(4, 12, 25); \
	SCALED(t, 32); \
	LOW(t, 48, 27, 3)

// NEXT goes on to the next block, whose scales lie so many bytes behind these.
#define NEXT(by) \
	ADD  $by, R2; \
	ADD  $by, R3; \
	SUBS $1, R9, R9

// func multiplySigned32x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplySigned32x1NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD1

loop:
	PANELS
	SIGNED32(R4, 16)
	NEXT(16)
	BNE loop
	STORE1
	RET

// func multiplySigned32x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplySigned32x2NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD2

loop:
	PANELS
	SIGNED32(R4, 16)
	SIGNED32(R5, 18)
	NEXT(16)
	BNE loop
	STORE2
	RET

// func multiplySigned32x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplySigned32x4NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD4

loop:
	PANELS
	SIGNED32(R4, 16)
	SIGNED32(R5, 18)
	SIGNED32(R6, 20)
	SIGNED32(R7, 22)
	NEXT(16)
	BNE loop
	STORE4
	RET

// func multiplyLow32x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplyLow32x1NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD1

loop:
	PANELS
	LOW32(R4, 16)
	NEXT(32)
	BNE loop
	STORE1
	RET

// func multiplyLow32x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplyLow32x2NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD2

loop:
	PANELS
	LOW32(R4, 16)
	LOW32(R5, 18)
	NEXT(32)
	BNE loop
	STORE2
	RET

// func multiplyLow32x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplyLow32x4NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD4

loop:
	PANELS
	LOW32(R4, 16)
	LOW32(R5, 18)
	LOW32(R6, 20)
	LOW32(R7, 22)
	NEXT(32)
	BNE loop
	STORE4
	RET

// func multiplySigned16x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplySigned16x1NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD1

loop:
	PANELS
	SIGNED16(R4, 16)
	NEXT(32)
	BNE loop
	STORE1
	RET

// func multiplySigned16x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplySigned16x2NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD2

loop:
	PANELS
	SIGNED16(R4, 16)
	SIGNED16(R5, 18)
	NEXT(32)
	BNE loop
	STORE2
	RET

// func multiplySigned16x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplySigned16x4NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD4

loop:
	PANELS
	SIGNED16(R4, 16)
	SIGNED16(R5, 18)
	SIGNED16(R6, 20)
	SIGNED16(R7, 22)
	NEXT(32)
	BNE loop
	STORE4
	RET

// func multiplyLow16x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplyLow16x1NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD1

loop:
	PANELS
	LOW16(R4, 16)
	NEXT(64)
	BNE loop
	STORE1
	RET

// func multiplyLow16x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplyLow16x2NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD2

loop:
	PANELS
	LOW16(R4, 16)
	LOW16(R5, 18)
	NEXT(64)
	BNE loop
	STORE2
	RET

// func multiplyLow16x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)
TEXT ·multiplyLow16x4NEON(SB), NOSPLIT, $0-72
	ARGUMENTS
	LOAD4

loop:
	PANELS
	LOW16(R4, 16)
	LOW16(R5, 18)
	LOW16(R6, 20)
	LOW16(R7, 22)
	NEXT(64)
	BNE loop
	STORE4
	RET
