#include "textflag.h"
#include "instructions_arm64.h"

// QUANTISE makes integers of lanes of d: those of NaN are 0.
#define QUANTISE(d) \
	FMULLANE(d, d, 18, 1); \
	FCVTNS4(d, d)

// See quantizeGeneric. V0 to V7 are the values of a block, then V0 and V1 as bytes. V24
// is the least magnitude that counts, V25 are bytes of 1, V26 is 127.
//
// func quantizeNEON(record *byte, x *float32, blocks int)
TEXT ·quantizeNEON(SB), NOSPLIT, $0-24
	MOVD  record+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  blocks+16(FP), R2
	MOVD  $(27<<23), R3 // 2^-100
	VDUP  R3, V24.S4
	VMOVI $1, V25.B16
	MOVD  $0x42fe0000, R3
	VDUP  R3, V26.S4

block:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]

	// The largest magnitude as bits: NaN is above all numbers.
	FABS4(16, 0)
	FABS4(17, 1)
	FABS4(18, 2)
	FABS4(19, 3)
	FABS4(20, 4)
	FABS4(21, 5)
	FABS4(22, 6)
	FABS4(23, 7)
	VUMAX V16.S4, V17.S4, V16.S4
	VUMAX V18.S4, V19.S4, V18.S4
	VUMAX V20.S4, V21.S4, V20.S4
	VUMAX V22.S4, V23.S4, V22.S4
	VUMAX V16.S4, V18.S4, V16.S4
	VUMAX V20.S4, V22.S4, V20.S4
	VUMAX V16.S4, V20.S4, V16.S4
	UMAXLANES(16, 16)
	DUPFIRST(16, 16)

	// V18: the scale, top/127, and its inverse. That of infinity is 0, and what is
	// infinite or NaN becomes NaN by it.
	VZIP1 V26.S4, V16.S4, V17.S4
	VREV64 V17.S4, V19.S4
	FDIVLOWER(18, 17, 19)
	CMHS4(16, 16, 24)
	VAND   V16.B16, V18.B16, V18.B16

	QUANTISE(0)
	QUANTISE(1)
	QUANTISE(2)
	QUANTISE(3)
	QUANTISE(4)
	QUANTISE(5)
	QUANTISE(6)
	QUANTISE(7)
	VUZP1 V1.H8, V0.H8, V0.H8
	VUZP1 V3.H8, V2.H8, V2.H8
	VUZP1 V5.H8, V4.H8, V4.H8
	VUZP1 V7.H8, V6.H8, V6.H8
	VUZP1 V2.B16, V0.B16, V0.B16
	VUZP1 V6.B16, V4.B16, V1.B16

	// V20: the sums of the halves, by turns, V21: of all. V22 and V23 are their products
	// with the scale.
	ZERO16(20)
	ZERO16(21)
	SDOT4(20, 0, 25)
	SDOT4(21, 1, 25)
	VADDP V21.S4, V20.S4, V20.S4
	VADDP V20.S4, V20.S4, V20.S4
	VADDP V20.S4, V20.S4, V21.S4
	SCVTF4(22, 20)
	SCVTF4(23, 21)
	FMULLANE(22, 22, 18, 0)
	FMULS F18, F23, F23 // and zeros behind it

	// -128 times the sums.
	SHL4(20, 20, 7)
	SHL4(21, 21, 7)
	NEG4(20, 20)
	NEG4(21, 21)
	VZIP1  V21.S4, V18.S4, V2.S4
	VZIP1  V23.D2, V2.D2, V2.D2
	VZIP1  V22.D2, V20.D2, V3.D2
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)
	SUBS   $1, R2
	BNE    block
	RET
