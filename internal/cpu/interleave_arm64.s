#include "textflag.h"

// func interleaveNEON(to, from *byte, stride, words int)
TEXT ·interleaveNEON(SB), NOSPLIT, $0-32
	MOVD to+0(FP), R0
	MOVD from+8(FP), R1
	MOVD stride+16(FP), R5
	MOVD words+24(FP), R6
	ADD  R1, R5, R2
	ADD  R2, R5, R3
	ADD  R3, R5, R4
	SUBS $4, R6
	BLT  rest

four:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V1.S4]
	VLD1.P 16(R3), [V2.S4]
	VLD1.P 16(R4), [V3.S4]
	VST4.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	SUBS   $4, R6
	BGE    four

rest:
	ADDS $4, R6
	BEQ  done

one:
	VLD1.P 4(R1), V0.S[0]
	VLD1.P 4(R2), V0.S[1]
	VLD1.P 4(R3), V0.S[2]
	VLD1.P 4(R4), V0.S[3]
	VST1.P [V0.S4], 16(R0)
	SUBS   $1, R6
	BNE    one

done:
	RET
