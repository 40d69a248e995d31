// Instructions that Go's assembler does not know, or not by the numbers of their
// vector registers: the destination, then the operands as the architecture manual
// orders them. All work on 4 lanes of 32 bits where nothing else is said.

// SDOTLANE adds to each lane the products of its 4 bytes of n and of the 4 bytes of
// lane i of m: SDOT Vd.4S, Vn.16B, Vm.4B[i].
#define SDOTLANE(d, n, m, i) WORD $(0x4f80e000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// SDOT4 does this with the 4 bytes of each lane of m.
#define SDOT4(d, n, m) WORD $(0x4e809400 | (m)<<16 | (n)<<5 | (d))

// FMULLANE, FMLALANE and FMLSLANE multiply by lane i of m: FMUL, FMLA and FMLS
// Vd.4S, Vn.4S, Vm.S[i].
#define FMULLANE(d, n, m, i) WORD $(0x4f809000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define FMLALANE(d, n, m, i) WORD $(0x4f801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define FMLSLANE(d, n, m, i) WORD $(0x4f805000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

#define FMLA4(d, n, m) WORD $(0x4e20cc00 | (m)<<16 | (n)<<5 | (d))
#define FMUL4(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))
#define FMLS4(d, n, m) WORD $(0x4ea0cc00 | (m)<<16 | (n)<<5 | (d))
#define FADD4(d, n, m) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d))
#define FSUB4(d, n, m) WORD $(0x4ea0d400 | (m)<<16 | (n)<<5 | (d))
#define FDIV4(d, n, m) WORD $(0x6e20fc00 | (m)<<16 | (n)<<5 | (d))
// FDIVLOWER is of the lower 2 lanes, and those above become 0.
#define FDIVLOWER(d, n, m) WORD $(0x2e20fc00 | (m)<<16 | (n)<<5 | (d))
#define FABS4(d, n) WORD $(0x4ea0f800 | (n)<<5 | (d))
// FRINTN4 rounds to the nearest integer, FCVTNS4 makes it an integer: 0 of NaN.
#define FRINTN4(d, n) WORD $(0x4e218800 | (n)<<5 | (d))
#define FCVTNS4(d, n) WORD $(0x4e21a800 | (n)<<5 | (d))

// Of 2 lanes of 64 bits. FCVTLSD and FCVTL2SD make them of the lower and of the upper
// 2 float32, FCVTNDS and FCVTN2DS make these of them.
#define FADD2(d, n, m) WORD $(0x4e60d400 | (m)<<16 | (n)<<5 | (d))
#define FSUB2(d, n, m) WORD $(0x4ee0d400 | (m)<<16 | (n)<<5 | (d))
#define FMUL2(d, n, m) WORD $(0x6e60dc00 | (m)<<16 | (n)<<5 | (d))
#define FMLA2(d, n, m) WORD $(0x4e60cc00 | (m)<<16 | (n)<<5 | (d))
#define FCVTLSD(d, n) WORD $(0x0e617800 | (n)<<5 | (d))
#define FCVTL2SD(d, n) WORD $(0x4e617800 | (n)<<5 | (d))
#define FCVTNDS(d, n) WORD $(0x0e616800 | (n)<<5 | (d))
#define FCVTN2DS(d, n) WORD $(0x4e616800 | (n)<<5 | (d))

// FMIN4 and FMAX4 are NaN where one of the two is.
#define FMIN4(d, n, m) WORD $(0x4ea0f400 | (m)<<16 | (n)<<5 | (d))
#define FMAX4(d, n, m) WORD $(0x4e20f400 | (m)<<16 | (n)<<5 | (d))

// FMAXLANES is the largest lane of n, FADDPAIRS are the sums of neighbours: two of n,
// then two of m.
#define FMAXLANES(d, n) WORD $(0x6e30f800 | (n)<<5 | (d))
#define FADDPAIRS(d, n, m) WORD $(0x6e20d400 | (m)<<16 | (n)<<5 | (d))

// SCVTF4 and UCVTF4 convert integers to float32.
#define SCVTF4(d, n) WORD $(0x4e21d800 | (n)<<5 | (d))
#define UCVTF4(d, n) WORD $(0x6e21d800 | (n)<<5 | (d))

// FCVTLHS converts the lower 4 float16 to float32.
#define FCVTLHS(d, n) WORD $(0x0e217800 | (n)<<5 | (d))
// FCVTL2HS converts the upper 4.
#define FCVTL2HS(d, n) WORD $(0x4e217800 | (n)<<5 | (d))
// FCVTNSH converts 4 float32 to float16, the lower half of d, FCVTN2SH to the upper.
#define FCVTNSH(d, n) WORD $(0x0e216800 | (n)<<5 | (d))
#define FCVTN2SH(d, n) WORD $(0x4e216800 | (n)<<5 | (d))

// UXTLBH widens the lower bytes to 16 bits, UXTLHS the lower 16 bits to 32.
#define UXTLBH(d, n) WORD $(0x2f08a400 | (n)<<5 | (d))
#define UXTLHS(d, n) WORD $(0x2f10a400 | (n)<<5 | (d))
// SXTLBH and SXTLHS do so with signs, SXTL2BH and SXTL2HS with the upper ones.
#define SXTLBH(d, n) WORD $(0x0f08a400 | (n)<<5 | (d))
#define SXTLHS(d, n) WORD $(0x0f10a400 | (n)<<5 | (d))
#define SXTL2BH(d, n) WORD $(0x4f08a400 | (n)<<5 | (d))
#define SXTL2HS(d, n) WORD $(0x4f10a400 | (n)<<5 | (d))
// SSHLLBH widens the lower bytes to 16 bits, with signs, and shifts them to the left; SSHLL2BH the
// upper ones. CLEAR14 clears bit 14 of all 16-bit words.
#define SSHLLBH(d, n, by) WORD $(0x0f00a400 | (8+(by))<<16 | (n)<<5 | (d))
#define SSHLL2BH(d, n, by) WORD $(0x4f00a400 | (8+(by))<<16 | (n)<<5 | (d))
#define CLEAR14(d) WORD $(0x6f02b400 | (d))
// UXTL2HS widens the upper 16 bits to 32. SHLLHS and SHLL2HS have these as the upper
// halves of 32.
#define UXTL2HS(d, n) WORD $(0x6f10a400 | (n)<<5 | (d))
#define SHLLHS(d, n) WORD $(0x2e613800 | (n)<<5 | (d))
#define SHLL2HS(d, n) WORD $(0x6e613800 | (n)<<5 | (d))

// SHL4, USHR4 and SSHR4 shift. SRI4 shifts right and keeps what is above.
#define SHL4(d, n, by) WORD $(0x4f005400 | (32+(by))<<16 | (n)<<5 | (d))
#define USHR4(d, n, by) WORD $(0x6f000400 | (64-(by))<<16 | (n)<<5 | (d))
#define SSHR4(d, n, by) WORD $(0x4f000400 | (64-(by))<<16 | (n)<<5 | (d))
#define SRI4(d, n, by) WORD $(0x6f004400 | (64-(by))<<16 | (n)<<5 | (d))

#define ADD4(d, n, m) WORD $(0x4ea08400 | (m)<<16 | (n)<<5 | (d))
#define SUB4(d, n, m) WORD $(0x6ea08400 | (m)<<16 | (n)<<5 | (d))
#define NEG4(d, n) WORD $(0x6ea0b800 | (n)<<5 | (d))
#define SMAX4(d, n, m) WORD $(0x4ea06400 | (m)<<16 | (n)<<5 | (d))
#define UMIN4(d, n, m) WORD $(0x6ea06c00 | (m)<<16 | (n)<<5 | (d))
// CMEQ4 sets all bits of the lanes that are equal.
#define CMEQ4(d, n, m) WORD $(0x6ea08c00 | (m)<<16 | (n)<<5 | (d))
// UMAXLANES is the largest lane of n, CMHS4 sets all bits of the lanes of n that are not
// below those of m, without signs.
#define UMAXLANES(d, n) WORD $(0x6eb0a800 | (n)<<5 | (d))
#define CMHS4(d, n, m) WORD $(0x6ea03c00 | (m)<<16 | (n)<<5 | (d))
#define OR16(d, n, m) WORD $(0x4ea01c00 | (m)<<16 | (n)<<5 | (d))
#define NOT16(d, n) WORD $(0x6e205800 | (n)<<5 | (d))
// BIC16 clears the bits of m in n. BSL16 chooses by the bits of d: n, or m where they
// are 0. FCMGT4 sets all bits of the lanes where n is above m, CMLTZ4 of those that
// are negative as integers.
#define BIC16(d, n, m) WORD $(0x4e601c00 | (m)<<16 | (n)<<5 | (d))
#define BSL16(d, n, m) WORD $(0x6e601c00 | (m)<<16 | (n)<<5 | (d))
#define MOV16(d, n) OR16(d, n, n)
#define FCMGT4(d, n, m) WORD $(0x6ea0e400 | (m)<<16 | (n)<<5 | (d))
#define CMLTZ4(d, n) WORD $(0x4ea0a800 | (n)<<5 | (d))

// DUPFIRST is lane 0 of n everywhere, ZERO16 zero.
#define DUPFIRST(d, n) WORD $(0x4e040400 | (n)<<5 | (d))
// DUPLANE is lane i of n everywhere.
#define DUPLANE(d, n, i) WORD $(0x4e040400 | (i)<<19 | (n)<<5 | (d))
#define ZERO16(d) WORD $(0x6f00e400 | (d))

// LDQ and STQ load and store 16 bytes off from register n, a multiple of 16. LDD loads
// 8 bytes, LDS 4 and LDH 2, off a multiple of these; STS and STH store as many.
#define LDQ(t, n, off) WORD $(0x3dc00000 | ((off)>>4)<<10 | (n)<<5 | (t))
#define STQ(t, n, off) WORD $(0x3d800000 | ((off)>>4)<<10 | (n)<<5 | (t))
#define LDD(t, n, off) WORD $(0xfd400000 | ((off)>>3)<<10 | (n)<<5 | (t))
#define LDS(t, n, off) WORD $(0xbd400000 | ((off)>>2)<<10 | (n)<<5 | (t))
#define STS(t, n, off) WORD $(0xbd000000 | ((off)>>2)<<10 | (n)<<5 | (t))
#define LDH(t, n, off) WORD $(0x7d400000 | ((off)>>1)<<10 | (n)<<5 | (t))
#define STH(t, n, off) WORD $(0x7d000000 | ((off)>>1)<<10 | (n)<<5 | (t))
// LDQNEXT, LDDNEXT and LDSNEXT load from register n and go on behind that, STQNEXT,
// STDNEXT and STSNEXT store.
#define LDQNEXT(t, n) WORD $(0x3cc10400 | (n)<<5 | (t))
#define STQNEXT(t, n) WORD $(0x3c810400 | (n)<<5 | (t))
#define LDDNEXT(t, n) WORD $(0xfc408400 | (n)<<5 | (t))
#define STDNEXT(t, n) WORD $(0xfc008400 | (n)<<5 | (t))
#define LDSNEXT(t, n) WORD $(0xbc404400 | (n)<<5 | (t))
#define STSNEXT(t, n) WORD $(0xbc004400 | (n)<<5 | (t))
// LDQX and LDDX load 16 and 8 bytes from register n, as far on as register m says;
// PRFMX asks for the line there.
#define LDQX(t, n, m) WORD $(0x3ce06800 | (m)<<16 | (n)<<5 | (t))
#define LDDX(t, n, m) WORD $(0xfc606800 | (m)<<16 | (n)<<5 | (t))
#define PRFMX(n, m) WORD $(0xf8a06800 | (m)<<16 | (n)<<5)

// ADDI adds a number below 4096 to register d.
#define ADDI(d, by) WORD $(0x91000000 | (by)<<10 | (d)<<5 | (d))
