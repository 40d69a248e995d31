// e^x by the range reduction and the polynomial of package gen (gen/exp.go), the latter
// taken in pairs, within 2 units in the last place. Where the result would be below the
// normal numbers it is 0; e^-Inf is 0, and NaN stays NaN. x must not be above 88: no use
// needs that, and so 2^n is added to the exponent in one step.
//
//	V25  for what is needed on the way
//	V26  lane 0: log2 e; 1 and 2: ln 2 in two parts, n times the first of which is
//	     exact; 3: the coefficient of r⁶
//	V27  lanes 0 and 1: the coefficients of r³ and r⁵
//	V28  that of r²
//	V29  that of r⁴
//	V30  1
//	V31  -87.3365402: below it the result is 0

DATA exponential<>+0(SB)/4, $1.44269504088896341
DATA exponential<>+4(SB)/4, $0.693359375
DATA exponential<>+8(SB)/4, $-2.12194440054690583e-4
DATA exponential<>+12(SB)/4, $0.00138144335
DATA exponential<>+16(SB)/4, $0.166665196
DATA exponential<>+20(SB)/4, $0.00836879667
DATA exponential<>+24(SB)/4, $0.49999994
DATA exponential<>+28(SB)/4, $0.0416683964
DATA exponential<>+32(SB)/4, $1.0
DATA exponential<>+36(SB)/4, $-87.3365402
GLOBL exponential<>(SB), RODATA|NOPTR, $40

// EXPCONSTANTS loads the constants, by way of R21.
#define EXPCONSTANTS \
	MOVD $exponential<>(SB), R21; \
	VLD1.P 16(R21), [V26.S4]; \
	VLD1.P 8(R21), [V27.S2]; \
	VLD1R.P 4(R21), [V28.S4]; \
	VLD1R.P 4(R21), [V29.S4]; \
	VLD1R.P 4(R21), [V30.S4]; \
	VLD1R (R21), [V31.S4]

// EXP makes e^x of the 4 lanes of x, in place, with four registers beside it.
#define EXP(x, n, y, z, low) \
	FMULLANE(y, x, 26, 0); \
	FCMGT4(low, 31, x); \
	FCVTNS4(n, y); \
	FRINTN4(y, y); \
	FMLSLANE(x, y, 26, 1); \
	FMLSLANE(x, y, 26, 2); \
	SHL4(n, n, 23); \
	MOV16(y, 28); \
	FMLALANE(y, x, 27, 0); \
	MOV16(z, 29); \
	FMLALANE(z, x, 27, 1); \
	FMUL4(25, x, x); \
	FMLALANE(z, 25, 26, 3); \
	FADD4(x, x, 30); \
	FMLA4(y, z, 25); \
	FMLA4(x, y, 25); \
	ADD4(x, x, n); \
	BIC16(x, x, low)
