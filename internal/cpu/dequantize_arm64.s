#include "textflag.h"
#include "instructions_arm64.h"

// The float32 values of rows of weights, with the very operations of package tensor:
// a product rounded, then a difference rounded. The bits are the same.
//
//	R0   values          V0        16 values as bytes
//	R1   the block       V1, V2    these as 16 bits
//	R2   blocks left     V4-V7     and as float32
//	                     V16       scales of the block
//	                     V20-V23   scales of the groups, Q4_K and Q5_K: and minima
//	                     V24       the minimum of a group
//	                     V25-V29   constants, bits
//	                     V30, V31  bytes of the block

// FLOATS makes float32 of the bytes of V0, SCALE multiplies them by lane i of s, LESS
// subtracts V24.
#define FLOATS \
	SXTLBH(1, 0); \
	SXTL2BH(2, 0); \
	SXTLHS(4, 1); \
	SXTL2HS(5, 1); \
	SXTLHS(6, 2); \
	SXTL2HS(7, 2); \
	SCVTF4(4, 4); \
	SCVTF4(5, 5); \
	SCVTF4(6, 6); \
	SCVTF4(7, 7)
#define SCALE(s, i) \
	FMULLANE(4, 4, s, i); \
	FMULLANE(5, 5, s, i); \
	FMULLANE(6, 6, s, i); \
	FMULLANE(7, 7, s, i)
#define LESS \
	FSUB4(4, 4, 24); \
	FSUB4(5, 5, 24); \
	FSUB4(6, 6, 24); \
	FSUB4(7, 7, 24)
#define STORE(to) \
	STQ(4, 0, 4*(to)); \
	STQ(5, 0, 4*(to)+16); \
	STQ(6, 0, 4*(to)+32); \
	STQ(7, 0, 4*(to)+48)

// PUT writes the 16 values from to on, PUTLESS those of formats with a minimum.
#define PUT(s, i, to) \
	FLOATS; \
	SCALE(s, i); \
	STORE(to)
#define PUTLESS(s, i, to) \
	FLOATS; \
	SCALE(s, i); \
	LESS; \
	STORE(to)

// BLOCKS is a function.
#define BLOCKS(CONSTANTS, BLOCK, bytes, values) \
	MOVD dst+0(FP), R0; \
	MOVD src+8(FP), R1; \
	MOVD n+16(FP), R2; \
	CONSTANTS; \
block: \
	BLOCK; \
	ADD  $bytes, R1; \
	ADD  $(4*values), R0; \
	SUBS $1, R2; \
	BNE  block; \
	RET

#define NONE

#define EIGHTF16 \
	LDQ(0, 1, 0); \
	FCVTLHS(4, 0); \
	FCVTL2HS(5, 0); \
	STQ(4, 0, 0); \
	STQ(5, 0, 16)

// func f16NEON(dst *float32, src *byte, n int)
TEXT ·f16NEON(SB), NOSPLIT, $0-24
	BLOCKS(NONE, EIGHTF16, 16, 8)

#define EIGHTBF16 \
	LDQ(0, 1, 0); \
	SHLLHS(4, 0); \
	SHLL2HS(5, 0); \
	STQ(4, 0, 0); \
	STQ(5, 0, 16)

// func bf16NEON(dst *float32, src *byte, n int)
TEXT ·bf16NEON(SB), NOSPLIT, $0-24
	BLOCKS(NONE, EIGHTBF16, 16, 8)

// SCALEHALF is the scale of 16 bits that a block of 32 begins with. R3 is what is
// behind it.
#define SCALEHALF \
	LDH(16, 1, 0); \
	FCVTLHS(16, 16); \
	ADD $2, R1, R3

#define BLOCKQ8_0 \
	SCALEHALF; \
	LDQ(0, 3, 0); \
	PUT(16, 0, 0); \
	LDQ(0, 3, 16); \
	PUT(16, 0, 16)

// func q8_0NEON(dst *float32, src *byte, n int)
TEXT ·q8_0NEON(SB), NOSPLIT, $0-24
	BLOCKS(NONE, BLOCKQ8_0, 34, 32)

#define CONSTANTSQ4_0 \
	VMOVI $15, V25.B16; \
	VMOVI $8, V26.B16

#define BLOCKQ4_0 \
	SCALEHALF; \
	LDQ(30, 3, 0); \
	VAND  V25.B16, V30.B16, V0.B16; \
	VSUB  V26.B16, V0.B16, V0.B16; \
	PUT(16, 0, 0); \
	VUSHR $4, V30.B16, V0.B16; \
	VSUB  V26.B16, V0.B16, V0.B16; \
	PUT(16, 0, 16)

// func q4_0NEON(dst *float32, src *byte, n int)
TEXT ·q4_0NEON(SB), NOSPLIT, $0-24
	BLOCKS(CONSTANTSQ4_0, BLOCKQ4_0, 18, 32)

// GROUPSK4 sets V20 and V21 to the scales of groups 0 to 3 and 4 to 7 of a block of
// Q4_K or Q5_K, V22 and V23 to the minima. Eight bytes have six bits each of a scale
// or minimum of the first groups, and above them the upper two of one of the last,
// whose lower four are in the four bytes behind.
#define MASKSK4 \
	MOVD $0x3f3f3f3f3f3f3f3f, R6; \
	MOVD $0x0f0f0f0f0f0f0f0f, R7; \
	MOVD $0x3030303030303030, R8
#define GROUPSK4 \
	LDS(16, 1, 0); \
	FCVTLHS(16, 16); \
	MOVD  4(R1), R3; \
	MOVWU 12(R1), R4; \
	AND   R6, R3, R5; \
	VMOV  R5, V20.D[0]; \
	ORR   R4<<28, R4, R5; \
	AND   R7, R5; \
	AND   R3>>2, R8, R9; \
	ORR   R9, R5; \
	VMOV  R5, V21.D[0]; \
	UXTLBH(20, 20); \
	UXTLBH(21, 21); \
	UXTL2HS(22, 20); \
	UXTL2HS(23, 21); \
	UXTLHS(20, 20); \
	UXTLHS(21, 21); \
	UCVTF4(20, 20); \
	UCVTF4(21, 21); \
	UCVTF4(22, 22); \
	UCVTF4(23, 23); \
	FMULLANE(20, 20, 16, 0); \
	FMULLANE(21, 21, 16, 0); \
	FMULLANE(22, 22, 16, 1); \
	FMULLANE(23, 23, 16, 1)

// LOWER4 and UPPER4 are four bits of 16 bytes, WHOLE all eight.
#define LOWER4(from) VAND V25.B16, from, V0.B16
#define UPPER4(from) VUSHR $4, from, V0.B16
#define WHOLE(from) VMOV from, V0.B16

// GROUPQ4_K writes a group, whose scale is lane i of s, PAIRQ4_K the groups 2*p and
// 2*p+1, whose values share bytes.
#define GROUPQ4_K(UNPACK, s, i, to) \
	DUPLANE(24, (s)+2, i); \
	UNPACK(V30.B16); \
	PUTLESS(s, i, to); \
	UNPACK(V31.B16); \
	PUTLESS(s, i, (to)+16)
#define PAIRQ4_K(p, s, i) \
	LDQ(30, 1, 16+32*(p)); \
	LDQ(31, 1, 32+32*(p)); \
	GROUPQ4_K(LOWER4, s, i, 64*(p)); \
	GROUPQ4_K(UPPER4, s, (i)+1, 64*(p)+32)

#define CONSTANTSQ4_K \
	MASKSK4; \
	VMOVI $15, V25.B16
#define BLOCKQ4_K \
	GROUPSK4; \
	PAIRQ4_K(0, 20, 0); \
	PAIRQ4_K(1, 20, 2); \
	PAIRQ4_K(2, 21, 0); \
	PAIRQ4_K(3, 21, 2)

// func q4_KNEON(dst *float32, src *byte, n int)
TEXT ·q4_KNEON(SB), NOSPLIT, $0-24
	BLOCKS(CONSTANTSQ4_K, BLOCKQ4_K, 144, 256)

// FIFTH takes the fifth bits from the lowest of high and brings down the next group's.
#define FIFTH(high) \
	VSLI  $4, high, V0.B16; \
	VAND  V25.B16, V0.B16, V0.B16; \
	VUSHR $1, high, high

#define GROUPQ5_K(UNPACK, s, i, to) \
	DUPLANE(24, (s)+2, i); \
	UNPACK(V30.B16); \
	FIFTH(V26.B16); \
	PUTLESS(s, i, to); \
	UNPACK(V31.B16); \
	FIFTH(V27.B16); \
	PUTLESS(s, i, (to)+16)
#define PAIRQ5_K(p, s, i) \
	LDQ(30, 1, 48+32*(p)); \
	LDQ(31, 1, 64+32*(p)); \
	GROUPQ5_K(WHOLE, s, i, 64*(p)); \
	GROUPQ5_K(UPPER4, s, (i)+1, 64*(p)+32)

#define CONSTANTSQ5_K \
	MASKSK4; \
	VMOVI $31, V25.B16
#define BLOCKQ5_K \
	GROUPSK4; \
	LDQ(26, 1, 16); \
	LDQ(27, 1, 32); \
	PAIRQ5_K(0, 20, 0); \
	PAIRQ5_K(1, 20, 2); \
	PAIRQ5_K(2, 21, 0); \
	PAIRQ5_K(3, 21, 2)

// func q5_KNEON(dst *float32, src *byte, n int)
TEXT ·q5_KNEON(SB), NOSPLIT, $0-24
	BLOCKS(CONSTANTSQ5_K, BLOCKQ5_K, 176, 256)

// GROUPSQ6_K sets V20 to V23 to the scales of the 16 groups.
#define GROUPSQ6_K \
	LDH(16, 1, 208); \
	FCVTLHS(16, 16); \
	LDQ(0, 1, 192); \
	FLOATS; \
	FMULLANE(20, 4, 16, 0); \
	FMULLANE(21, 5, 16, 0); \
	FMULLANE(22, 6, 16, 0); \
	FMULLANE(23, 7, 16, 0)

// UPPER2 takes the upper two bits from the lowest of V27, brings down the next group's,
// and subtracts 32.
#define UPPER2 \
	VSLI  $4, V27.B16, V0.B16; \
	VAND  V25.B16, V0.B16, V0.B16; \
	VSUB  V26.B16, V0.B16, V0.B16; \
	VUSHR $2, V27.B16, V27.B16

// QUARTERQ6_K writes the groups g, g+2, g+4 and g+6, where g is 8*p+e. The scales of
// the first two are lanes e and e+2 of s, those of the others lanes of the register
// behind s.
#define QUARTERQ6_K(p, e, s) \
	LDQ(30, 1, 64*(p)+16*(e)); \
	LDQ(31, 1, 64*(p)+16*(e)+32); \
	LDQ(27, 1, 128+32*(p)+16*(e)); \
	WHOLE(V30.B16); \
	UPPER2; \
	PUT(s, e, 128*(p)+16*(e)); \
	WHOLE(V31.B16); \
	UPPER2; \
	PUT(s, (e)+2, 128*(p)+16*(e)+32); \
	UPPER4(V30.B16); \
	UPPER2; \
	PUT((s)+1, e, 128*(p)+16*(e)+64); \
	UPPER4(V31.B16); \
	UPPER2; \
	PUT((s)+1, (e)+2, 128*(p)+16*(e)+96)

#define CONSTANTSQ6_K \
	VMOVI $63, V25.B16; \
	VMOVI $32, V26.B16
#define BLOCKQ6_K \
	GROUPSQ6_K; \
	QUARTERQ6_K(0, 0, 20); \
	QUARTERQ6_K(0, 1, 20); \
	QUARTERQ6_K(1, 0, 22); \
	QUARTERQ6_K(1, 1, 22)

// func q6_KNEON(dst *float32, src *byte, n int)
TEXT ·q6_KNEON(SB), NOSPLIT, $0-24
	BLOCKS(CONSTANTSQ6_K, BLOCKQ6_K, 210, 256)
