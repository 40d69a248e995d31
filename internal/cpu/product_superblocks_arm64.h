// Products with formats of 256 values in a block, in pieces of 32 or 16 with a scale
// each.

// Where a record has what belongs to piece p of 16, half p%2 of block p/2: its values,
// the scale, and the sums, of which those of the second half follow.
#define VALUES16(p) (64*((p)/2)+16*((p)%2))
#define D16(p) (64*((p)/2)+32)
#define SUMS16(p) (64*((p)/2)+48)

// FIELD is so many bits of each word of r from at on, as a number.
#define FIELD(r, at, bits) \
	SHL4(r, r, 32-(bits)-(at)); \
	USHR4(r, r, 32-(bits))

// SIX is the number of six bits of which the upper two are in r from high on, and the
// lower four in s from low on.
#define SIX(r, high, s, low) \
	SHL4(r, r, 30-(high)); \
	SHL4(s, s, 28-(low)); \
	SRI4(r, s, 2); \
	USHR4(r, r, 26)

// TIMES is the number r by d.
#define TIMES(r, d) \
	UCVTF4(r, r); \
	FMUL4(r, r, d)

// TIMESLESS32 is the number in V0, less 32, by V6. V3 is 32.
#define CONSTANT32 \
	MOVW $32, R21; \
	VDUP R21, V3.S4
#define TIMESLESS32 \
	SUB4(0, 0, 3); \
	SCVTF4(0, 0); \
	FMUL4(0, 0, 6)

// More bits are moved, and then put above the others, from at on, or the others
// shifted right under them.
#define HIGHUP(by) VSHL $by, V2.B16, V2.B16
#define HIGHDOWN(by) VUSHR $by, V2.B16, V2.B16
#define ABOVE(at) \
	VSLI $at, V2.B16, V0.B16; \
	MASKED
#define UNDER(by) \
	VSRI $by, V0.B16, V2.B16; \
	VAND V4.B16, V2.B16, V0.B16

// Q2_K: words 0 to 3 are scales and minima, four bits each, a byte for a piece.

#define CONSTANTSQ2_K VMOVI $3, V4.B16

#define UNPACK0Q2_K MASKED
#define UNPACK1Q2_K DOWN(2); MASKED
#define UNPACK2Q2_K DOWN(4); MASKED
#define UNPACK3Q2_K DOWN(6)

#define PIECEQ2_K(EACH, p, UNPACK) \
	EACH(ZERO, 0, 0); \
	HALF(EACH, VALUES16(p), UNPACK, 64+128*((p)/8)+64*((p)%2)); \
	LDQ(0, 9, 16*((p)/4)); \
	LDQ(3, 9, 16*((p)/4)); \
	FIELD(0, 8*((p)%4), 4); \
	FIELD(3, 8*((p)%4)+4, 4); \
	TIMES(0, 6); \
	TIMES(3, 7); \
	EACH(READ, D16(p), 0); \
	EACH(SCALED, 0, 0); \
	EACH(READ, SUMS16(p), 0); \
	EACH(LOWERED, 2+(p)%2, 0)

#define BLOCKQ2_K(EACH) \
	HALVES(6, 0); \
	HALVES(7, 8); \
	PIECEQ2_K(EACH, 0, UNPACK0Q2_K); \
	PIECEQ2_K(EACH, 1, UNPACK0Q2_K); \
	PIECEQ2_K(EACH, 2, UNPACK1Q2_K); \
	PIECEQ2_K(EACH, 3, UNPACK1Q2_K); \
	PIECEQ2_K(EACH, 4, UNPACK2Q2_K); \
	PIECEQ2_K(EACH, 5, UNPACK2Q2_K); \
	PIECEQ2_K(EACH, 6, UNPACK3Q2_K); \
	PIECEQ2_K(EACH, 7, UNPACK3Q2_K); \
	PIECEQ2_K(EACH, 8, UNPACK0Q2_K); \
	PIECEQ2_K(EACH, 9, UNPACK0Q2_K); \
	PIECEQ2_K(EACH, 10, UNPACK1Q2_K); \
	PIECEQ2_K(EACH, 11, UNPACK1Q2_K); \
	PIECEQ2_K(EACH, 12, UNPACK2Q2_K); \
	PIECEQ2_K(EACH, 13, UNPACK2Q2_K); \
	PIECEQ2_K(EACH, 14, UNPACK3Q2_K); \
	PIECEQ2_K(EACH, 15, UNPACK3Q2_K); \
	NEXT(EACH, 320, 16, 512)

// Q3_K: words 0 to 7 are third bits, bit p/2 of a byte for piece p; words 24 and 25
// are four bits of scales and word 26 the other two. Values are 4 less.

#define CONSTANTSQ3_K VMOVI $7, V4.B16; CONSTANT32

#define UNPACK0Q3_K ABOVE(2)
#define UNPACK1Q3_K DOWN(2); HIGHDOWN(1); ABOVE(2)
#define UNPACK2Q3_K DOWN(4); HIGHDOWN(2); ABOVE(2)
#define UNPACK3Q3_K HIGHDOWN(1); UNDER(6)
#define UNPACK4Q3_K HIGHDOWN(4); ABOVE(2)
#define UNPACK5Q3_K DOWN(2); HIGHDOWN(5); ABOVE(2)
#define UNPACK6Q3_K DOWN(4); HIGHDOWN(6); ABOVE(2)
#define UNPACK7Q3_K HIGHDOWN(5); UNDER(6)

#define PIECEQ3_K(EACH, p, UNPACK) \
	EACH(BIASED, SUMS16(p)+4*((p)%2), 5); \
	HALF2(EACH, VALUES16(p), UNPACK, 128+128*((p)/8)+64*((p)%2), 64*((p)%2)); \
	LDQ(0, 9, 416); \
	LDQ(1, 9, 384+16*((p)/4%2)); \
	SIX(0, 8*((p)%4)+2*((p)/4), 1, 8*((p)%4)+4*((p)/8)); \
	TIMESLESS32; \
	EACH(READ, D16(p), 0); \
	EACH(SCALED, 0, 0)

#define BLOCKQ3_K(EACH) \
	HALVES(6, 0); \
	PIECEQ3_K(EACH, 0, UNPACK0Q3_K); \
	PIECEQ3_K(EACH, 1, UNPACK0Q3_K); \
	PIECEQ3_K(EACH, 2, UNPACK1Q3_K); \
	PIECEQ3_K(EACH, 3, UNPACK1Q3_K); \
	PIECEQ3_K(EACH, 4, UNPACK2Q3_K); \
	PIECEQ3_K(EACH, 5, UNPACK2Q3_K); \
	PIECEQ3_K(EACH, 6, UNPACK3Q3_K); \
	PIECEQ3_K(EACH, 7, UNPACK3Q3_K); \
	PIECEQ3_K(EACH, 8, UNPACK4Q3_K); \
	PIECEQ3_K(EACH, 9, UNPACK4Q3_K); \
	PIECEQ3_K(EACH, 10, UNPACK5Q3_K); \
	PIECEQ3_K(EACH, 11, UNPACK5Q3_K); \
	PIECEQ3_K(EACH, 12, UNPACK6Q3_K); \
	PIECEQ3_K(EACH, 13, UNPACK6Q3_K); \
	PIECEQ3_K(EACH, 14, UNPACK7Q3_K); \
	PIECEQ3_K(EACH, 15, UNPACK7Q3_K); \
	NEXT(EACH, 432, 8, 512)

// Q4_K and Q5_K: words 0 to 2 are scales and minima of six bits. Those of the first
// four pieces are bytes of the first and of the second word; those of the others have
// four bits in the third and two above the former.

#define FIRSTSCALES(g) \
	LDQ(0, 9, 0); \
	LDQ(3, 9, 16); \
	FIELD(0, 8*(g), 6); \
	FIELD(3, 8*(g), 6)
#define OTHERSCALES(g) \
	LDQ(0, 9, 0); \
	LDQ(1, 9, 32); \
	SIX(0, 8*((g)-4)+6, 1, 8*((g)-4)); \
	LDQ(3, 9, 16); \
	LDQ(1, 9, 32); \
	SIX(3, 8*((g)-4)+6, 1, 8*((g)-4)+4)

// SCALEDK4 ends piece g.
#define SCALEDK4(EACH, g) \
	TIMES(0, 6); \
	TIMES(3, 7); \
	EACH(READ, 64*(g)+32, 0); \
	EACH(SCALED, 0, 0); \
	EACH(LOWERED, 2, 0)

#define CONSTANTSQ4_K VMOVI $15, V4.B16

#define PIECEQ4_K(EACH, g, UNPACK, SCALES) \
	EACH(ZERO, 0, 0); \
	HALF(EACH, 64*(g), UNPACK, 48+128*((g)/2)); \
	HALF(EACH, 64*(g)+16, UNPACK, 112+128*((g)/2)); \
	SCALES(g); \
	SCALEDK4(EACH, g)

#define BLOCKQ4_K(EACH) \
	HALVES(6, 0); \
	HALVES(7, 8); \
	PIECEQ4_K(EACH, 0, MASKED, FIRSTSCALES); \
	PIECEQ4_K(EACH, 1, UPPER, FIRSTSCALES); \
	PIECEQ4_K(EACH, 2, MASKED, FIRSTSCALES); \
	PIECEQ4_K(EACH, 3, UPPER, FIRSTSCALES); \
	PIECEQ4_K(EACH, 4, MASKED, OTHERSCALES); \
	PIECEQ4_K(EACH, 5, UPPER, OTHERSCALES); \
	PIECEQ4_K(EACH, 6, MASKED, OTHERSCALES); \
	PIECEQ4_K(EACH, 7, UPPER, OTHERSCALES); \
	NEXT(EACH, 560, 16, 512)

// Q5_K: words 3 to 10 are fifth bits, bit g of a byte for piece g.

#define CONSTANTSQ5_K VMOVI $31, V4.B16

#define UNPACK0Q5_K ABOVE(4)
#define UNPACK1Q5_K HIGHUP(3); UNDER(4)
#define UNPACK2Q5_K HIGHDOWN(2); ABOVE(4)
#define UNPACK3Q5_K HIGHUP(1); UNDER(4)
#define UNPACK4Q5_K HIGHDOWN(4); ABOVE(4)
#define UNPACK5Q5_K HIGHDOWN(1); UNDER(4)
#define UNPACK6Q5_K HIGHDOWN(6); ABOVE(4)
#define UNPACK7Q5_K HIGHDOWN(3); UNDER(4)

#define PIECEQ5_K(EACH, g, UNPACK, SCALES) \
	EACH(ZERO, 0, 0); \
	HALF2(EACH, 64*(g), UNPACK, 176+128*((g)/2), 48); \
	HALF2(EACH, 64*(g)+16, UNPACK, 240+128*((g)/2), 112); \
	SCALES(g); \
	SCALEDK4(EACH, g)

#define BLOCKQ5_K(EACH) \
	HALVES(6, 0); \
	HALVES(7, 8); \
	PIECEQ5_K(EACH, 0, UNPACK0Q5_K, FIRSTSCALES); \
	PIECEQ5_K(EACH, 1, UNPACK1Q5_K, FIRSTSCALES); \
	PIECEQ5_K(EACH, 2, UNPACK2Q5_K, FIRSTSCALES); \
	PIECEQ5_K(EACH, 3, UNPACK3Q5_K, FIRSTSCALES); \
	PIECEQ5_K(EACH, 4, UNPACK4Q5_K, OTHERSCALES); \
	PIECEQ5_K(EACH, 5, UNPACK5Q5_K, OTHERSCALES); \
	PIECEQ5_K(EACH, 6, UNPACK6Q5_K, OTHERSCALES); \
	PIECEQ5_K(EACH, 7, UNPACK7Q5_K, OTHERSCALES); \
	NEXT(EACH, 688, 16, 512)

// Q6_K: words 32 to 47 are fifth and sixth bits, two of a byte for each of four pairs
// of pieces; words 48 to 51 are scales, a byte each. Values are 32 less.

#define CONSTANTSQ6_K VMOVI $63, V4.B16

#define UNPACK0Q6_K ABOVE(4)
#define UNPACK1Q6_K HIGHDOWN(2); ABOVE(4)
#define UNPACK2Q6_K UNDER(4)
#define UNPACK3Q6_K HIGHDOWN(2); UNDER(4)

#define PIECEQ6_K(EACH, p, UNPACK) \
	EACH(BIASED, SUMS16(p)+4*((p)%2), 2); \
	HALF2(EACH, VALUES16(p), UNPACK, 256*((p)/8)+64*((p)%4), 512+128*((p)/8)+64*((p)%2)); \
	LDQ(0, 9, 768+16*((p)/4)); \
	SHL4(0, 0, 24-8*((p)%4)); \
	SSHR4(0, 0, 24); \
	SCVTF4(0, 0); \
	FMUL4(0, 0, 6); \
	EACH(READ, D16(p), 0); \
	EACH(SCALED, 0, 0)

#define BLOCKQ6_K(EACH) \
	HALVES(6, 0); \
	PIECEQ6_K(EACH, 0, UNPACK0Q6_K); \
	PIECEQ6_K(EACH, 1, UNPACK0Q6_K); \
	PIECEQ6_K(EACH, 2, UNPACK1Q6_K); \
	PIECEQ6_K(EACH, 3, UNPACK1Q6_K); \
	PIECEQ6_K(EACH, 4, UNPACK2Q6_K); \
	PIECEQ6_K(EACH, 5, UNPACK2Q6_K); \
	PIECEQ6_K(EACH, 6, UNPACK3Q6_K); \
	PIECEQ6_K(EACH, 7, UNPACK3Q6_K); \
	PIECEQ6_K(EACH, 8, UNPACK0Q6_K); \
	PIECEQ6_K(EACH, 9, UNPACK0Q6_K); \
	PIECEQ6_K(EACH, 10, UNPACK1Q6_K); \
	PIECEQ6_K(EACH, 11, UNPACK1Q6_K); \
	PIECEQ6_K(EACH, 12, UNPACK2Q6_K); \
	PIECEQ6_K(EACH, 13, UNPACK2Q6_K); \
	PIECEQ6_K(EACH, 14, UNPACK3Q6_K); \
	PIECEQ6_K(EACH, 15, UNPACK3Q6_K); \
	NEXT(EACH, 832, 8, 512)

// IQ4_XS: word 0 is four bits of each scale, and the head has the other two.

#define CONSTANTSIQ4_XS CONSTANTSIQ4; CONSTANT32

#define PIECEIQ4_XS(EACH, g) \
	EACH(ZERO, 0, 0); \
	HALF(EACH, 64*(g), LOOKUPLOWER, 16+64*(g)); \
	HALF(EACH, 64*(g)+16, LOOKUPUPPER, 16+64*(g)); \
	LDD(0, 10, 8); \
	UXTLHS(0, 0); \
	LDQ(1, 9, 0); \
	SIX(0, 2*(g), 1, 4*(g)); \
	TIMESLESS32; \
	EACH(READ, 64*(g)+32, 0); \
	EACH(SCALED, 0, 0)

#define BLOCKIQ4_XS(EACH) \
	HALVES(6, 0); \
	PIECEIQ4_XS(EACH, 0); \
	PIECEIQ4_XS(EACH, 1); \
	PIECEIQ4_XS(EACH, 2); \
	PIECEIQ4_XS(EACH, 3); \
	PIECEIQ4_XS(EACH, 4); \
	PIECEIQ4_XS(EACH, 5); \
	PIECEIQ4_XS(EACH, 6); \
	PIECEIQ4_XS(EACH, 7); \
	NEXT(EACH, 528, 16, 512)

// TQ2_0: words 0 to 7 are values 0 to 127, two bits of a byte for each of four pieces, words
// 8 to 15 the others. Values are 1 less, and all pieces have the scale of the block.

#define CONSTANTSTQ2_0 CONSTANTSQ2_K

#define PIECETQ2_0(EACH, g, UNPACK) \
	EACH(BIASED, 64*(g)+36, 7); \
	HALF(EACH, 64*(g), UNPACK, 128*((g)/4)); \
	HALF(EACH, 64*(g)+16, UNPACK, 64+128*((g)/4)); \
	MOV16(0, 6); \
	EACH(READ, 64*(g)+32, 0); \
	EACH(SCALED, 0, 0)

#define BLOCKTQ2_0(EACH) \
	HALVES(6, 0); \
	PIECETQ2_0(EACH, 0, UNPACK0Q2_K); \
	PIECETQ2_0(EACH, 1, UNPACK1Q2_K); \
	PIECETQ2_0(EACH, 2, UNPACK2Q2_K); \
	PIECETQ2_0(EACH, 3, UNPACK3Q2_K); \
	PIECETQ2_0(EACH, 4, UNPACK0Q2_K); \
	PIECETQ2_0(EACH, 5, UNPACK1Q2_K); \
	PIECETQ2_0(EACH, 6, UNPACK2Q2_K); \
	PIECETQ2_0(EACH, 7, UNPACK3Q2_K); \
	NEXT(EACH, 256, 8, 512)
