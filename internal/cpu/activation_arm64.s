#include "textflag.h"
#include "instructions_arm64.h"
#include "exp_arm64.h"
#include "sweep_arm64.h"

// GLU is a function. V0 to V7 are for ACTIVATION; V24 are signs, V30 is 1.
#define GLU(ACTIVATION) \
	MOVD y+0(FP), R0; \
	MOVD gate+8(FP), R1; \
	MOVD up+16(FP), R2; \
	MOVD n+24(FP), R4; \
	MOVD $coefficients<>(SB), R5; \
	VLD1 (R5), [V20.S4, V21.S4, V22.S4, V23.S4]; \
	VMOVI $128, V24.B16; \
	SHL4(24, 24, 24); \
	EXPCONSTANTS; \
	SWEEP(ACTIVATION, ONE(ACTIVATION)); \
	RET

// The coefficients of erfc, see gen/activation.go, from that of t^9 on in V20 to V22,
// and what else is multiplied by there and in V23.
DATA coefficients<>+0(SB)/4, $0.17087277
DATA coefficients<>+4(SB)/4, $-0.82215223
DATA coefficients<>+8(SB)/4, $1.48851587
DATA coefficients<>+12(SB)/4, $-1.13520398
DATA coefficients<>+16(SB)/4, $0.27886807
DATA coefficients<>+20(SB)/4, $-0.18628806
DATA coefficients<>+24(SB)/4, $0.09678418
DATA coefficients<>+28(SB)/4, $0.37409196
DATA coefficients<>+32(SB)/4, $1.00002368
DATA coefficients<>+36(SB)/4, $-1.26551223
DATA coefficients<>+40(SB)/4, $0.5
DATA coefficients<>+44(SB)/4, $0.35355339059327373  // sqrt(2)/4
DATA coefficients<>+48(SB)/4, $1.59576912160573071  // 2*sqrt(2/pi)
DATA coefficients<>+52(SB)/4, $0.071354816272600245 // 0.044715 times that
DATA coefficients<>+56(SB)/4, $0.0
DATA coefficients<>+60(SB)/4, $0.0
GLOBL coefficients<>(SB), RODATA|NOPTR, $64

// LOGISTIC makes of V1 the numbers V2 and V3 whose quotient is 1/(1+exp(-V1)): an
// exponential of -|x| does not overflow, and is accurate where the quotient is small.
#define LOGISTIC \
	CMLTZ4(2, 1); \
	OR16(1, 1, 24); \
	EXP(1, 4, 5, 6, 7); \
	FADD4(3, 1, 30); \
	BSL16(2, 1, 30)

// GATED multiplies by the other row.
#define GATED(LOAD, STORE) \
	LOAD(1, 2); \
	FMUL4(0, 0, 1); \
	STORE(0, 0)

#define SILU(LOAD, STORE, k) \
	LOAD(0, 1); \
	MOV16(1, 0); \
	LOGISTIC; \
	FMUL4(0, 0, 2); \
	FDIV4(0, 0, 3); \
	GATED(LOAD, STORE)

// func gluSiLUNEON(y, gate, up *float32, n int)
TEXT ·gluSiLUNEON(SB), NOSPLIT, $0-32
	GLU(SILU)

#define SIGMOID(LOAD, STORE, k) \
	LOAD(1, 1); \
	LOGISTIC; \
	FDIV4(0, 2, 3); \
	GATED(LOAD, STORE)

// func gluSigmoidNEON(y, gate, up *float32, n int)
TEXT ·gluSigmoidNEON(SB), NOSPLIT, $0-32
	GLU(SIGMOID)

// (1+tanh(u))/2 is the logistic function of 2u.
#define GELUTANH(LOAD, STORE, k) \
	LOAD(0, 1); \
	FMUL4(2, 0, 0); \
	DUPLANE(1, 23, 0); \
	FMLALANE(1, 2, 23, 1); \
	FMUL4(1, 1, 0); \
	LOGISTIC; \
	FMUL4(0, 0, 2); \
	FDIV4(0, 0, 3); \
	GATED(LOAD, STORE)

// func gluGELUTanhNEON(y, gate, up *float32, n int)
TEXT ·gluGELUTanhNEON(SB), NOSPLIT, $0-32
	GLU(GELUTANH)

// HORNER multiplies from by t, V2, and adds lane i of c.
#define HORNER(to, from, c, i) \
	DUPLANE(to, c, i); \
	FMLA4(to, from, 2)

// x/2*erfc(-x/sqrt(2)): V1 is erfc's half of |x|, and where x is not negative the
// result is of 1 less that.
#define GELU(LOAD, STORE, k) \
	LOAD(0, 1); \
	FABS4(2, 0); \
	FMULLANE(2, 2, 22, 3); \
	FADD4(2, 2, 30); \
	FDIV4(2, 30, 2); \
	DUPLANE(1, 20, 0); \
	HORNER(3, 1, 20, 1); \
	HORNER(1, 3, 20, 2); \
	HORNER(3, 1, 20, 3); \
	HORNER(1, 3, 21, 0); \
	HORNER(3, 1, 21, 1); \
	HORNER(1, 3, 21, 2); \
	HORNER(3, 1, 21, 3); \
	HORNER(1, 3, 22, 0); \
	HORNER(3, 1, 22, 1); \
	FMULLANE(1, 0, 22, 2); \
	FMLS4(3, 1, 0); \
	EXP(3, 4, 5, 6, 7); \
	FMUL4(3, 3, 2); \
	FMULLANE(3, 3, 22, 2); \
	FSUB4(1, 30, 3); \
	CMLTZ4(2, 0); \
	BSL16(2, 3, 1); \
	FMUL4(0, 0, 2); \
	GATED(LOAD, STORE)

// func gluGELUNEON(y, gate, up *float32, n int)
TEXT ·gluGELUNEON(SB), NOSPLIT, $0-32
	GLU(GELU)

#define RELU(LOAD, STORE, k) \
	LOAD(0, 1); \
	ZERO16(2); \
	FMAX4(0, 0, 2); \
	GATED(LOAD, STORE)

// func gluReLUNEON(y, gate, up *float32, n int)
TEXT ·gluReLUNEON(SB), NOSPLIT, $0-32
	GLU(RELU)

#define RELUSQUARED(LOAD, STORE, k) \
	LOAD(0, 1); \
	ZERO16(2); \
	FMAX4(0, 0, 2); \
	FMUL4(0, 0, 0); \
	GATED(LOAD, STORE)

// func gluReLUSquaredNEON(y, gate, up *float32, n int)
TEXT ·gluReLUSquaredNEON(SB), NOSPLIT, $0-32
	GLU(RELUSQUARED)
