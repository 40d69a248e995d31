// Products with formats of 32 values in a block.

#define CONSTANTSQ4_0 VMOVI $15, V4.B16
#define CONSTANTSQ4_1 CONSTANTSQ4_0

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

#define CONSTANTSIQ4_NL CONSTANTSIQ4
#define BLOCKIQ4_NL(EACH) \
	EACH(ZERO, 0, 0); \
	NIBBLES(EACH, LOOKUPLOWER, LOOKUPUPPER); \
	SCALEDHALF(EACH); \
	NEXT(EACH, 64, 8, 64)

#define CONSTANTSQ8_0 NONE
#define BLOCKQ8_0(EACH) \
	EACH(ZERO, 0, 0); \
	HALF(EACH, 0, NONE, 0); \
	HALF(EACH, 16, NONE, 64); \
	SCALEDHALF(EACH); \
	NEXT(EACH, 128, 8, 64)

// The fifth bits of Q5_0 and Q5_1 are a word of each row, value i's being bit i. That
// is V6. V5 has the lowest byte of a row go to all its bytes, V7 are the bits there of
// four values. What is tested comes to V1.
#define CONSTANTSQ5_0 \
	VMOVI $31, V4.B16; \
	MOVD  $0x0404040400000000, R21; \
	VMOV  R21, V5.D[0]; \
	MOVD  $0x0c0c0c0c08080808, R21; \
	VMOV  R21, V5.D[1]; \
	MOVW  $0x08040201, R21; \
	VDUP  R21, V7.S4

#define CONSTANTSQ5_1 CONSTANTSQ5_0

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
