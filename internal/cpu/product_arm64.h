// Products of weights whose rows are interleaved by 4 with records of 1, 2, 4 or 8
// tokens, see quantized.go and interleave.go.
//
//	V0       four values of each row; the scale of a piece
//	V1       what else is needed for a moment
//	V2       bits that belong to the values
//	V3       the minimum of a piece
//	V4, V5   constants: the mask, the table
//	V6, V7   the scale and the minimum of a block
//	V8-V15   16 values of a block of a record, of tokens 0 to 7
//	V16-V23  totals of tokens 0 to 7
//	V24-V31  their sums
//
// Formats that do without some of the first eight use them otherwise.
//
//	R0-R7  records         R15  the first record, where it begins
//	R8     totals          R19  blocks
//	R9     words           R20  groups left
//	R10    heads           R22  bytes from a record to the next
//	R12    blocks left     R23  bytes from a group to the next
//	R13    the group's     R24  bytes from its totals to the next
//	       words           R21  constants
//	R14    its heads

// What is done for each token is a macro of its number.
#define EACH1(MACRO, a, b) MACRO(0, a, b)
#define EACH2(MACRO, a, b) EACH1(MACRO, a, b); MACRO(1, a, b)
#define EACH4(MACRO, a, b) EACH2(MACRO, a, b); MACRO(2, a, b); MACRO(3, a, b)
#define EACH8(MACRO, a, b) EACH4(MACRO, a, b); MACRO(4, a, b); MACRO(5, a, b); MACRO(6, a, b); MACRO(7, a, b)

#define RECORD(n) (8+(n))
#define TOTAL(n) (16+(n))
#define SUM(n) (24+(n))

#define LOADTOTAL(n, a, b) LDQ(TOTAL(n), 8, 16*(n))
#define STORETOTAL(n, a, b) STQ(TOTAL(n), 8, 16*(n))

// ZERO begins a sum. BIASED begins it with a number of the record shifted right,
// -128 times the sum of the record's values: then those of the weight need not be
// made less by 128 shifted right.
#define ZERO(n, a, b) ZERO16(SUM(n))
#define BIASED(n, off, by) \
	LDS(RECORD(n), n, off); \
	SSHR4(RECORD(n), RECORD(n), by); \
	DUPFIRST(SUM(n), RECORD(n))

// READ loads 16 bytes of the record, DOT adds the products with four of these, from
// 4*i on.
#define READ(n, off, b) LDQ(RECORD(n), n, off)
#define DOT(n, i, b) SDOTLANE(SUM(n), 0, RECORD(n), i)

// SCALED adds to the total the sum by the scales of the piece and of the record. The
// latter begins the 16 bytes that were read.
#define SCALED(n, a, b) \
	SCVTF4(SUM(n), SUM(n)); \
	FMULLANE(1, 0, RECORD(n), 0); \
	FMLA4(TOTAL(n), SUM(n), 1)

// RAISED adds to the total the minimum of the piece by lane i of the 16 bytes that
// were read, LOWERED subtracts it.
#define RAISED(n, i, b) FMLALANE(TOTAL(n), 3, RECORD(n), i)
#define LOWERED(n, i, b) FMLSLANE(TOTAL(n), 3, RECORD(n), i)

#define ADVANCE(n, by, b) ADDI(n, by)

// FOURTH adds the products of four values, which UNPACK makes of the word i behind
// off, HALF those of 16 values with those at x of the record.
#define FOURTH(EACH, UNPACK, off, i) \
	LDQ(0, 9, (off)+16*(i)); \
	UNPACK; \
	EACH(DOT, i, 0)
#define HALF(EACH, x, UNPACK, off) \
	EACH(READ, x, 0); \
	FOURTH(EACH, UNPACK, off, 0); \
	FOURTH(EACH, UNPACK, off, 1); \
	FOURTH(EACH, UNPACK, off, 2); \
	FOURTH(EACH, UNPACK, off, 3)

// FOURTH2 and HALF2 are these for values that have more bits at high.
#define FOURTH2(EACH, UNPACK, off, high, i) \
	LDQ(2, 9, (high)+16*(i)); \
	FOURTH(EACH, UNPACK, off, i)
#define HALF2(EACH, x, UNPACK, off, high) \
	EACH(READ, x, 0); \
	FOURTH2(EACH, UNPACK, off, high, 0); \
	FOURTH2(EACH, UNPACK, off, high, 1); \
	FOURTH2(EACH, UNPACK, off, high, 2); \
	FOURTH2(EACH, UNPACK, off, high, 3)

#define NONE

// MASKED, UPPER and DOWN make values of bits: the lowest, the upper four, and those
// from by on. LOOKUP makes them of indices.
#define MASKED VAND V4.B16, V0.B16, V0.B16
#define DOWN(by) VUSHR $by, V0.B16, V0.B16
#define UPPER DOWN(4)
#define LOOKUP VTBL V0.B16, [V5.B16], V0.B16
#define LOOKUPLOWER MASKED; LOOKUP
#define LOOKUPUPPER UPPER; LOOKUP

// CONSTANTSIQ4 are for IQ4_NL and IQ4_XS: bytes 0 to 7 and 8 to 15 of what four bits
// stand for.
#define CONSTANTSIQ4 \
	VMOVI $15, V4.B16; \
	MOVD  $0xf6eaddcfbfad9881, R21; \
	VMOV  R21, V5.D[0]; \
	MOVD  $0x7159453526190d01, R21; \
	VMOV  R21, V5.D[1]

// HALVES are 4 float16 at off of the heads as float32.
#define HALVES(r, off) \
	LDD(r, 10, off); \
	FCVTLHS(r, r)

// NEXT goes on to the next block.
#define NEXT(EACH, words, heads, records) \
	ADD  $words, R9; \
	ADD  $heads, R10; \
	EACH(ADVANCE, records, 0); \
	SUBS $1, R12

// PRODUCT is a function. BLOCK ends with NEXT.
#define PRODUCT(EACH, CONSTANTS, BLOCK) \
	MOVD totals+0(FP), R8; \
	MOVD totalsStride+8(FP), R24; \
	MOVD words+16(FP), R13; \
	MOVD heads+24(FP), R14; \
	MOVD stride+32(FP), R23; \
	MOVD x+40(FP), R15; \
	MOVD xStride+48(FP), R22; \
	MOVD blocks+56(FP), R19; \
	MOVD groups+64(FP), R20; \
	CONSTANTS; \
group: \
	MOVD R13, R9; \
	MOVD R14, R10; \
	MOVD R19, R12; \
	MOVD R15, R0; \
	ADD  R0, R22, R1; \
	ADD  R1, R22, R2; \
	ADD  R2, R22, R3; \
	ADD  R3, R22, R4; \
	ADD  R4, R22, R5; \
	ADD  R5, R22, R6; \
	ADD  R6, R22, R7; \
	EACH(LOADTOTAL, 0, 0); \
block: \
	BLOCK(EACH); \
	BNE  block; \
	EACH(STORETOTAL, 0, 0); \
	ADD  R24, R8; \
	ADD  R23, R13; \
	ADD  R23, R14; \
	SUBS $1, R20; \
	BNE  group; \
	RET
