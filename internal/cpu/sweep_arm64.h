// Rows of R4 elements from the places that R0 to R3 are at, as far as a kernel has so
// many, 4 elements at a time.
//
// BODY(LOAD, STORE, k) is what is done with them; LOAD and STORE take the number of a
// vector register and that of a row's, and go on. SINGLE is for each of those that are
// left over at the end.

#define SWEEP(BODY, SINGLE) \
	SUBS $4, R4; \
	BLT  rest; \
four: \
	BODY(LDQNEXT, STQNEXT, 0); \
	SUBS $4, R4; \
	BGE  four; \
rest: \
	ADDS $4, R4; \
	BEQ  end; \
single: \
	SINGLE; \
	SUBS $1, R4; \
	BNE  single; \
end:

// SWEEP4 has BODY with k from 0 to 3 in a turn while there is as much left.
#define SWEEP4(BODY, SINGLE) \
	SUBS $16, R4; \
	BLT  less; \
sixteen: \
	BODY(LDQNEXT, STQNEXT, 0); \
	BODY(LDQNEXT, STQNEXT, 1); \
	BODY(LDQNEXT, STQNEXT, 2); \
	BODY(LDQNEXT, STQNEXT, 3); \
	SUBS $16, R4; \
	BGE  sixteen; \
less: \
	ADD $16, R4; \
	SWEEP(BODY, SINGLE)

// ONE(BODY) is a SINGLE that does the same: lanes above the first are 0 and nobody's.
#define ONE(BODY) BODY(LDSNEXT, STSNEXT, 0)
