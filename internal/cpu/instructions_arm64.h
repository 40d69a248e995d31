// Instructions that Go's assembler does not know, or not by the numbers of their
// vector registers: the destination, then the operands as the architecture manual
// orders them. All work on 4 lanes of 32 bits where nothing else is said.

// SDOTLANE adds to each lane the products of its 4 bytes of n and of the 4 bytes of
// lane i of m: SDOT Vd.4S, Vn.16B, Vm.4B[i].
#define SDOTLANE(d, n, m, i) WORD $(0x4f80e000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// FMULLANE, FMLALANE and FMLSLANE multiply by lane i of m: FMUL, FMLA and FMLS
// Vd.4S, Vn.4S, Vm.S[i].
#define FMULLANE(d, n, m, i) WORD $(0x4f809000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define FMLALANE(d, n, m, i) WORD $(0x4f801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define FMLSLANE(d, n, m, i) WORD $(0x4f805000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

#define FMLA4(d, n, m) WORD $(0x4e20cc00 | (m)<<16 | (n)<<5 | (d))
#define FMUL4(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))

// SCVTF4 and UCVTF4 convert integers to float32.
#define SCVTF4(d, n) WORD $(0x4e21d800 | (n)<<5 | (d))
#define UCVTF4(d, n) WORD $(0x6e21d800 | (n)<<5 | (d))

// FCVTLHS converts the lower 4 float16 to float32.
#define FCVTLHS(d, n) WORD $(0x0e217800 | (n)<<5 | (d))

// UXTLBH widens the lower bytes to 16 bits, UXTLHS the lower 16 bits to 32.
#define UXTLBH(d, n) WORD $(0x2f08a400 | (n)<<5 | (d))
#define UXTLHS(d, n) WORD $(0x2f10a400 | (n)<<5 | (d))

// SHL4, USHR4 and SSHR4 shift. SRI4 shifts right and keeps what is above.
#define SHL4(d, n, by) WORD $(0x4f005400 | (32+(by))<<16 | (n)<<5 | (d))
#define USHR4(d, n, by) WORD $(0x6f000400 | (64-(by))<<16 | (n)<<5 | (d))
#define SSHR4(d, n, by) WORD $(0x4f000400 | (64-(by))<<16 | (n)<<5 | (d))
#define SRI4(d, n, by) WORD $(0x6f004400 | (64-(by))<<16 | (n)<<5 | (d))

#define ADD4(d, n, m) WORD $(0x4ea08400 | (m)<<16 | (n)<<5 | (d))
#define SUB4(d, n, m) WORD $(0x6ea08400 | (m)<<16 | (n)<<5 | (d))
#define SMAX4(d, n, m) WORD $(0x4ea06400 | (m)<<16 | (n)<<5 | (d))
#define UMIN4(d, n, m) WORD $(0x6ea06c00 | (m)<<16 | (n)<<5 | (d))
// CMEQ4 sets all bits of the lanes that are equal.
#define CMEQ4(d, n, m) WORD $(0x6ea08c00 | (m)<<16 | (n)<<5 | (d))
#define OR16(d, n, m) WORD $(0x4ea01c00 | (m)<<16 | (n)<<5 | (d))
#define NOT16(d, n) WORD $(0x6e205800 | (n)<<5 | (d))

// DUPFIRST is lane 0 of n everywhere, ZERO16 zero.
#define DUPFIRST(d, n) WORD $(0x4e040400 | (n)<<5 | (d))
#define ZERO16(d) WORD $(0x6f00e400 | (d))

// LDQ and STQ load and store 16 bytes off from register n, a multiple of 16. LDD loads
// 8 bytes and LDS 4, off a multiple of these.
#define LDQ(t, n, off) WORD $(0x3dc00000 | ((off)>>4)<<10 | (n)<<5 | (t))
#define STQ(t, n, off) WORD $(0x3d800000 | ((off)>>4)<<10 | (n)<<5 | (t))
#define LDD(t, n, off) WORD $(0xfd400000 | ((off)>>3)<<10 | (n)<<5 | (t))
#define LDS(t, n, off) WORD $(0xbd400000 | ((off)>>2)<<10 | (n)<<5 | (t))

// ADDI adds a number below 4096 to register d.
#define ADDI(d, by) WORD $(0x91000000 | (by)<<10 | (d)<<5 | (d))
