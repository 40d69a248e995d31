#include "textflag.h"
#include "instructions_arm64.h"
#include "product_arm64.h"

// Products with formats of 32 values in a block.

#define CONSTANTSNIBBLES VMOVI $15, V4.B16

// NIBBLES adds the products of 32 values, the lower halves of 16 bytes and then the
// upper.
#define NIBBLES(EACH, UNPACKLOWER, UNPACKUPPER) \
	HALF(EACH, 0, UNPACKLOWER, 0); \
	HALF(EACH, 16, UNPACKUPPER, 0)

// SCALEDHALF ends a block with a scale, SCALEDHALVES one with a minimum too.
#define SCALEDHALF(EACH) \
	HALVES(0, 0); \
	EACH(READ, 32, 0); \
	EACH(SCALED, 0, 0)
#define SCALEDHALVES(EACH) \
	SCALEDHALF(EACH); \
	HALVES(3, 8); \
	EACH(RAISED, 2, 0)

// Values of Q4_0 are 8 less.
#define BLOCKQ4_0(EACH) \
	EACH(BIASED, 36, 4); \
	NIBBLES(EACH, MASKED, UPPER); \
	SCALEDHALF(EACH); \
	NEXT(EACH, 64, 8, 64)

#define BLOCKQ4_1(EACH) \
	EACH(ZERO, 0, 0); \
	NIBBLES(EACH, MASKED, UPPER); \
	SCALEDHALVES(EACH); \
	NEXT(EACH, 64, 16, 64)

#define BLOCKIQ4_NL(EACH) \
	EACH(ZERO, 0, 0); \
	NIBBLES(EACH, LOOKUPLOWER, LOOKUPUPPER); \
	SCALEDHALF(EACH); \
	NEXT(EACH, 64, 8, 64)

#define BLOCKQ8_0(EACH) \
	EACH(ZERO, 0, 0); \
	HALF(EACH, 0, NONE, 0); \
	HALF(EACH, 16, NONE, 64); \
	SCALEDHALF(EACH); \
	NEXT(EACH, 128, 8, 64)

// The fifth bits of Q5_0 and Q5_1 are a word of each row, value i's being bit i. That
// is V6. V5 has the lowest byte of a row go to all its bytes, V7 are the bits there of
// four values. What is tested comes to V1.
#define CONSTANTSQ5 \
	VMOVI $31, V4.B16; \
	MOVD  $0x0404040400000000, R21; \
	VMOV  R21, V5.D[0]; \
	MOVD  $0x0c0c0c0c08080808, R21; \
	VMOV  R21, V5.D[1]; \
	MOVW  $0x08040201, R21; \
	VDUP  R21, V7.S4

// FIFTHS2 adds the products of 8 values, from words i and i+1 behind the fifth bits.
#define FIFTHS2(EACH, UNPACK, i) \
	VTBL   V5.B16, [V6.B16], V2.B16; \
	USHR4(6, 6, 8); \
	VCMTST V7.B16, V2.B16, V1.B16; \
	FOURTH(EACH, UNPACK, 16, i); \
	VUSHR  $4, V2.B16, V2.B16; \
	VCMTST V7.B16, V2.B16, V1.B16; \
	FOURTH(EACH, UNPACK, 16, (i)+1)
#define FIFTHS(EACH, UNPACKLOWER, UNPACKUPPER) \
	EACH(READ, 0, 0); \
	FIFTHS2(EACH, UNPACKLOWER, 0); \
	FIFTHS2(EACH, UNPACKLOWER, 2); \
	EACH(READ, 16, 0); \
	FIFTHS2(EACH, UNPACKUPPER, 0); \
	FIFTHS2(EACH, UNPACKUPPER, 2)

// INSERTED has what was tested above the lower four bits.
#define INSERTED VSLI $4, V1.B16, V0.B16
#define UPPERINSERTED UPPER; INSERTED

// Values of Q5_0 are 16 less, so that their sign is the fifth bit inverted.
#define BLOCKQ5_0(EACH) \
	LDQ(6, 9, 0); \
	NOT16(6, 6); \
	EACH(ZERO, 0, 0); \
	FIFTHS(EACH, INSERTED, UPPERINSERTED); \
	SCALEDHALF(EACH); \
	NEXT(EACH, 80, 8, 64)

#define INSERTEDQ5_1 INSERTED; MASKED
#define UPPERINSERTEDQ5_1 UPPER; INSERTED; MASKED

#define BLOCKQ5_1(EACH) \
	LDQ(6, 9, 0); \
	EACH(ZERO, 0, 0); \
	FIFTHS(EACH, INSERTEDQ5_1, UPPERINSERTEDQ5_1); \
	SCALEDHALVES(EACH); \
	NEXT(EACH, 80, 16, 64)

// MXFP4's table has doubles of its values. V3, V6 and V7 are for POWER.
#define CONSTANTSMXFP4 \
	VMOVI $15, V4.B16; \
	MOVD  $0x0c08060403020100, R21; \
	VMOV  R21, V5.D[0]; \
	MOVD  $0xf4f8fafcfdfeff00, R21; \
	VMOV  R21, V5.D[1]; \
	MOVW  $1, R21; \
	VDUP  R21, V6.S4; \
	VSHL  $21, V6.S4, V3.S4; \
	MOVW  $255, R21; \
	VDUP  R21, V7.S4

// POWER is 2^(V0-128), NaN for 255. That of 0 and 1 is below the normal numbers: a
// bit of the fraction, which is then above the other result.
#define POWER \
	CMEQ4(2, 0, 7); \
	UMIN4(1, 0, 6); \
	SHL4(1, 1, 21); \
	ADD4(1, 1, 3); \
	SUB4(0, 0, 6); \
	SHL4(0, 0, 23); \
	SMAX4(0, 0, 1); \
	OR16(0, 0, 2)

#define BLOCKMXFP4(EACH) \
	EACH(ZERO, 0, 0); \
	NIBBLES(EACH, LOOKUPLOWER, LOOKUPUPPER); \
	LDS(0, 10, 0); \
	UXTLBH(0, 0); \
	UXTLHS(0, 0); \
	POWER; \
	EACH(READ, 32, 0); \
	EACH(SCALED, 0, 0); \
	NEXT(EACH, 64, 4, 64)

// func productQ4_0x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_0x1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, CONSTANTSNIBBLES, BLOCKQ4_0)

// func productQ4_0x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_0x2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, CONSTANTSNIBBLES, BLOCKQ4_0)

// func productQ4_0x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_0x4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, CONSTANTSNIBBLES, BLOCKQ4_0)

// func productQ4_0x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_0x8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, CONSTANTSNIBBLES, BLOCKQ4_0)

// func productQ4_1x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_1x1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, CONSTANTSNIBBLES, BLOCKQ4_1)

// func productQ4_1x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_1x2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, CONSTANTSNIBBLES, BLOCKQ4_1)

// func productQ4_1x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_1x4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, CONSTANTSNIBBLES, BLOCKQ4_1)

// func productQ4_1x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ4_1x8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, CONSTANTSNIBBLES, BLOCKQ4_1)

// func productQ5_0x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_0x1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, CONSTANTSQ5, BLOCKQ5_0)

// func productQ5_0x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_0x2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, CONSTANTSQ5, BLOCKQ5_0)

// func productQ5_0x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_0x4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, CONSTANTSQ5, BLOCKQ5_0)

// func productQ5_0x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_0x8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, CONSTANTSQ5, BLOCKQ5_0)

// func productQ5_1x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_1x1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, CONSTANTSQ5, BLOCKQ5_1)

// func productQ5_1x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_1x2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, CONSTANTSQ5, BLOCKQ5_1)

// func productQ5_1x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_1x4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, CONSTANTSQ5, BLOCKQ5_1)

// func productQ5_1x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ5_1x8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, CONSTANTSQ5, BLOCKQ5_1)

// func productQ8_0x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ8_0x1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, NONE, BLOCKQ8_0)

// func productQ8_0x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ8_0x2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, NONE, BLOCKQ8_0)

// func productQ8_0x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ8_0x4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, NONE, BLOCKQ8_0)

// func productQ8_0x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productQ8_0x8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, NONE, BLOCKQ8_0)

// func productIQ4_NLx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productIQ4_NLx1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, CONSTANTSIQ4, BLOCKIQ4_NL)

// func productIQ4_NLx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productIQ4_NLx2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, CONSTANTSIQ4, BLOCKIQ4_NL)

// func productIQ4_NLx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productIQ4_NLx4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, CONSTANTSIQ4, BLOCKIQ4_NL)

// func productIQ4_NLx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productIQ4_NLx8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, CONSTANTSIQ4, BLOCKIQ4_NL)

// func productMXFP4x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productMXFP4x1NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH1, CONSTANTSMXFP4, BLOCKMXFP4)

// func productMXFP4x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productMXFP4x2NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH2, CONSTANTSMXFP4, BLOCKMXFP4)

// func productMXFP4x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productMXFP4x4NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH4, CONSTANTSMXFP4, BLOCKMXFP4)

// func productMXFP4x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
TEXT ·productMXFP4x8NEON(SB), NOSPLIT, $0-72
	PRODUCT(EACH8, CONSTANTSMXFP4, BLOCKMXFP4)
