// How the blocks of formats of quantised weights are taken apart, four rows at a
// time. The rows are at R2 to R5, and what is to be fetched ahead is R7 behind them.
// Registers r to r+3 hold values of rows 0 to 3.

#define AHEAD(row, off) \
	ADD  R7, row, R8; \
	PRFM off(R8), PLDL1KEEP

#define AHEADROWS(off) \
	AHEAD(R2, off); \
	AHEAD(R3, off); \
	AHEAD(R4, off); \
	AHEAD(R5, off)

#define ROWS \
	MOVD w+16(FP), R2; \
	MOVD stride+24(FP), R8; \
	ADD  R2, R8, R3; \
	ADD  R3, R8, R4; \
	ADD  R4, R8, R5; \
	MOVD blocks+32(FP), R6; \
	MOVD next+40(FP), R7; \
	SUB  R2, R7

// NIBBLES is the upper halves of bytes at hi, the lower at lo, which they were at.
#define NIBBLES(lo, hi) \
	SHR16(hi, lo, 4); \
	AND16(lo, lo, 31)

#define NIBBLES4(lo, hi) \
	NIBBLES(lo, hi); \
	NIBBLES((lo)+1, (hi)+1); \
	NIBBLES((lo)+2, (hi)+2); \
	NIBBLES((lo)+3, (hi)+3)

#define LESS4(r) \
	SUB16(r, r, 30); \
	SUB16((r)+1, (r)+1, 30); \
	SUB16((r)+2, (r)+2, 30); \
	SUB16((r)+3, (r)+3, 30)

#define LOOKUP4(r) \
	TBL16(r, 30, r); \
	TBL16((r)+1, 30, (r)+1); \
	TBL16((r)+2, 30, (r)+2); \
	TBL16((r)+3, 30, (r)+3)

// HALVES loads a float16 of each row to V16, as float32.
#define HALVES \
	VLD1.P 2(R2), V16.H[0]; \
	VLD1.P 2(R3), V16.H[1]; \
	VLD1.P 2(R4), V16.H[2]; \
	VLD1.P 2(R5), V16.H[3]; \
	FCVTLHS(16, 16)

// QUADS loads 16 bytes of each row to V0-V3.
#define QUADS \
	VLD1.P 16(R2), [V0.B16]; \
	VLD1.P 16(R3), [V1.B16]; \
	VLD1.P 16(R4), [V2.B16]; \
	VLD1.P 16(R5), [V3.B16]

// The values of a block go to V0-V3, the first 16, and V4-V7; scales to V16.

#define CONSTANTS4_0 \
	VMOVI $15, V31.B16; \
	VMOVI $8, V30.B16
#define BLOCK4_0 \
	AHEADROWS(0); \
	HALVES; \
	QUADS; \
	NIBBLES4(0, 4); \
	LESS4(0); \
	LESS4(4)

// Bytes 0 to 7 and 8 to 15 of what IQ4_NL and IQ4_XS stand for.
#define CONSTANTSIQ4 \
	VMOVI $15, V31.B16; \
	MOVD  $0xf6eaddcfbfad9881, R8; \
	VMOV  R8, V30.D[0]; \
	MOVD  $0x7159453526190d01, R8; \
	VMOV  R8, V30.D[1]
#define BLOCKIQ4_NL \
	AHEADROWS(0); \
	HALVES; \
	QUADS; \
	NIBBLES4(0, 4); \
	LOOKUP4(0); \
	LOOKUP4(4)

#define BLOCK8_0 \
	AHEADROWS(0); \
	HALVES; \
	QUADS; \
	VLD1.P 16(R2), [V4.B16]; \
	VLD1.P 16(R3), [V5.B16]; \
	VLD1.P 16(R4), [V6.B16]; \
	VLD1.P 16(R5), [V7.B16]

// Scales and minima of Q4_K and Q5_K: row r's go to registers r, r+4, r+8 and r+12,
// two of each in turn. V30 is 1, -1, 1, -1.
#define SCALESK4(row, r) \
	VLD1R (row), [V16.S4]; \
	FCVTLHS(16, 16); \
	FMUL4(16, 16, 30); \
	MOVWU 4(row), R10; \
	MOVWU 8(row), R11; \
	MOVWU 12(row), R12; \
	AND   $0x3f3f3f3f, R10, R13; \
	AND   $0x3f3f3f3f, R11, R14; \
	LSR   $2, R10; \
	LSR   $2, R11; \
	AND   $0x30303030, R10; \
	AND   $0x30303030, R11; \
	AND   $0x0f0f0f0f, R12, R15; \
	LSR   $4, R12; \
	AND   $0x0f0f0f0f, R12; \
	ORR   R15, R10; \
	ORR   R12, R11; \
	ORR   R10<<32, R13; \
	ORR   R11<<32, R14; \
	VMOV  R13, V17.D[0]; \
	VMOV  R14, V18.D[0]; \
	ZIP1B(17, 17, 18); \
	UXTLBH(18, 17); \
	UXTLBH2(19, 17); \
	UXTLHS(r, 18); \
	UXTLHS2((r)+4, 18); \
	UXTLHS((r)+8, 19); \
	UXTLHS2((r)+12, 19); \
	UCVTF4(r, r); \
	UCVTF4((r)+4, (r)+4); \
	UCVTF4((r)+8, (r)+8); \
	UCVTF4((r)+12, (r)+12); \
	FMUL4(r, r, 16); \
	FMUL4((r)+4, (r)+4, 16); \
	FMUL4((r)+8, (r)+8, 16); \
	FMUL4((r)+12, (r)+12, 16); \
	ADD   $16, row

#define CONSTANTSK4 \
	VMOVI $15, V31.B16; \
	MOVD  $0xbf8000003f800000, R8; \
	VMOV  R8, V30.D[0]; \
	VMOV  R8, V30.D[1]

// STORESCALES writes 16 scales of every row, V0-V15, to to.
#define STORESCALES(to) \
	VST4.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(to); \
	VST4.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(to); \
	VST4.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(to); \
	VST4.P [V12.S4, V13.S4, V14.S4, V15.S4], 64(to)

// HEADK4 begins a block of Q4_K or Q5_K, its scales written to to.
#define HEADK4(to) \
	AHEADROWS(0); \
	AHEADROWS(64); \
	AHEADROWS(128); \
	SCALESK4(R2, 0); \
	SCALESK4(R3, 1); \
	SCALESK4(R4, 2); \
	SCALESK4(R5, 3); \
	STORESCALES(to)

// PAIRK4 is 64 values: the first 32 in V0-V7, the others in V8-V15.
#define PAIRK4 \
	QUADS; \
	VLD1.P 16(R2), [V4.B16]; \
	VLD1.P 16(R3), [V5.B16]; \
	VLD1.P 16(R4), [V6.B16]; \
	VLD1.P 16(R5), [V7.B16]; \
	NIBBLES4(0, 8); \
	NIBBLES4(4, 12)

// HIGHSK5 has R10 to R13 point to the fifth bits of Q5_K, R2 to R5 to the others;
// V28 and V29 shift them to the lowest bit of the first 32 values and the next.
#define HIGHSK5 \
	MOVD  R2, R10; \
	MOVD  R3, R11; \
	MOVD  R4, R12; \
	MOVD  R5, R13; \
	ADD   $32, R2; \
	ADD   $32, R3; \
	ADD   $32, R4; \
	ADD   $32, R5; \
	VMOVI $0, V28.B16; \
	VMOVI $255, V29.B16

// FIFTHS inserts those at n, by registers' numbers, into values r, r+4, r+8, r+12.
// V19 is 1.
#define FIFTHS(n, r) \
	LDQ(16, n, 0); \
	LDQ(17, n, 16); \
	USHL16(18, 16, 28); \
	AND16(18, 18, 19); \
	SLI16(r, 18, 4); \
	USHL16(18, 17, 28); \
	AND16(18, 18, 19); \
	SLI16((r)+4, 18, 4); \
	USHL16(18, 16, 29); \
	AND16(18, 18, 19); \
	SLI16((r)+8, 18, 4); \
	USHL16(18, 17, 29); \
	AND16(18, 18, 19); \
	SLI16((r)+12, 18, 4)

#define PAIRK5 \
	PAIRK4; \
	VMOVI $1, V19.B16; \
	FIFTHS(10, 0); \
	FIFTHS(11, 1); \
	FIFTHS(12, 2); \
	FIFTHS(13, 3); \
	VADD  V19.B16, V19.B16, V19.B16; \
	VSUB  V19.B16, V28.B16, V28.B16; \
	VSUB  V19.B16, V29.B16, V29.B16

// Scales of Q6_K, V16 being the rows' own, by the number of the register that points
// to the row.
#define SCALES6_K(n, r) \
	LDQ(17, n, 192); \
	SXTLBH(18, 17); \
	SXTLBH2(19, 17); \
	SXTLHS(r, 18); \
	SXTLHS2((r)+4, 18); \
	SXTLHS((r)+8, 19); \
	SXTLHS2((r)+12, 19); \
	SCVTF4(r, r); \
	SCVTF4((r)+4, (r)+4); \
	SCVTF4((r)+8, (r)+8); \
	SCVTF4((r)+12, (r)+12); \
	FMULLANE(r, r, 16, r); \
	FMULLANE((r)+4, (r)+4, 16, r); \
	FMULLANE((r)+8, (r)+8, 16, r); \
	FMULLANE((r)+12, (r)+12, 16, r)

#define HALF6_K(row, r) \
	ADD  $208, row, R8; \
	VLD1 (R8), V16.H[r]

#define HEAD6_K(to) \
	AHEADROWS(0); \
	AHEADROWS(64); \
	AHEADROWS(128); \
	AHEADROWS(192); \
	HALF6_K(R2, 0); \
	HALF6_K(R3, 1); \
	HALF6_K(R4, 2); \
	HALF6_K(R5, 3); \
	FCVTLHS(16, 16); \
	SCALES6_K(2, 0); \
	SCALES6_K(3, 1); \
	SCALES6_K(4, 2); \
	SCALES6_K(5, 3); \
	STORESCALES(to)

#define CONSTANTS6_K \
	VMOVI $15, V31.B16; \
	VMOVI $32, V30.B16; \
	VMOVI $3, V29.B16

// ROW6_K is 16 values of each of 4 times 32 of a row, to r, r+4, r+8 and r+12, from
// low on and high on.
#define ROW6_K(n, r, low, high) \
	LDQ(r, n, low); \
	LDQ((r)+4, n, (low)+32); \
	LDQ(16, n, high); \
	NIBBLES(r, (r)+8); \
	NIBBLES((r)+4, (r)+12); \
	AND16(17, 16, 29); \
	SLI16(r, 17, 4); \
	SHR16(17, 16, 2); \
	AND16(17, 17, 29); \
	SLI16((r)+4, 17, 4); \
	SHR16(17, 16, 4); \
	AND16(17, 17, 29); \
	SLI16((r)+8, 17, 4); \
	SHR16(17, 16, 6); \
	SLI16((r)+12, 17, 4)

#define ROWS6_K(low, high) \
	ROW6_K(2, 0, low, high); \
	ROW6_K(3, 1, low, high); \
	ROW6_K(4, 2, low, high); \
	ROW6_K(5, 3, low, high); \
	LESS4(0); \
	LESS4(4); \
	LESS4(8); \
	LESS4(12)

#define END6_K \
	ADD $210, R2; \
	ADD $210, R3; \
	ADD $210, R4; \
	ADD $210, R5
