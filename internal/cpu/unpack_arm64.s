#include "textflag.h"
#include "instructions_arm64.h"
#include "blocks_arm64.h"

// Panels of four rows, see quantized.go: R0 is the panel, R1 its scales. ST4 of 32
// bits writes four values of each of four rows in turn.

#define ARGUMENTS \
	MOVD panel+0(FP), R0; \
	MOVD scales+8(FP), R1; \
	ROWS

#define STORE8 \
	VST4.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0); \
	VST4.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0)

#define STORE16 \
	STORE8; \
	VST4.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R0); \
	VST4.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(R0)

// func unpackQ4_0NEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
TEXT ·unpackQ4_0NEON(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS4_0

loop:
	BLOCK4_0
	STORE8
	VST1.P [V16.S4], 16(R1)
	SUBS   $1, R6, R6
	BNE    loop
	RET

// func unpackIQ4_NLNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
TEXT ·unpackIQ4_NLNEON(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTSIQ4

loop:
	BLOCKIQ4_NL
	STORE8
	VST1.P [V16.S4], 16(R1)
	SUBS   $1, R6, R6
	BNE    loop
	RET

// func unpackQ8_0NEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
TEXT ·unpackQ8_0NEON(SB), NOSPLIT, $0-48
	ARGUMENTS

loop:
	BLOCK8_0
	STORE8
	VST1.P [V16.S4], 16(R1)
	SUBS   $1, R6, R6
	BNE    loop
	RET

// func unpackQ4_KNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
TEXT ·unpackQ4_KNEON(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTSK4

loop:
	HEADK4(R1)
	MOVD $4, R9

pairs:
	PAIRK4
	STORE16
	SUBS $1, R9, R9
	BNE  pairs
	SUBS $1, R6, R6
	BNE  loop
	RET

// func unpackQ5_KNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
TEXT ·unpackQ5_KNEON(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTSK4

loop:
	HEADK4(R1)
	HIGHSK5
	MOVD $4, R9

pairs:
	PAIRK5
	STORE16
	SUBS $1, R9, R9
	BNE  pairs
	SUBS $1, R6, R6
	BNE  loop
	RET

// STORE6_K writes 16 of each of 4 times 32 values to R0 and 128, 256 and 384 bytes
// behind it. R10 is 128.
#define STORE6_K \
	MOVD R0, R9; \
	VST4.P [V0.S4, V1.S4, V2.S4, V3.S4], (R9)(R10); \
	VST4.P [V4.S4, V5.S4, V6.S4, V7.S4], (R9)(R10); \
	VST4.P [V8.S4, V9.S4, V10.S4, V11.S4], (R9)(R10); \
	VST4 [V12.S4, V13.S4, V14.S4, V15.S4], (R9)

// func unpackQ6_KNEON(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)
TEXT ·unpackQ6_KNEON(SB), NOSPLIT, $0-48
	ARGUMENTS
	CONSTANTS6_K
	MOVD $128, R10

loop:
	HEAD6_K(R1)
	ROWS6_K(0, 128)
	STORE6_K
	ADD  $64, R0
	ROWS6_K(16, 144)
	STORE6_K
	ADD  $448, R0
	ROWS6_K(64, 160)
	STORE6_K
	ADD  $64, R0
	ROWS6_K(80, 176)
	STORE6_K
	ADD  $448, R0
	END6_K
	SUBS $1, R6, R6
	BNE  loop
	RET
