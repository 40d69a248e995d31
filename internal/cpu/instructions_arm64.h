// Instructions that Go's assembler does not know, by the numbers of their vector
// registers: the destination, then the operands as the architecture manual orders
// them. All work on 4 lanes of 32 bits where nothing else is said.

// SDOTLANE adds to each lane the products of its 4 bytes of n and of the 4 bytes of
// lane i of m: SDOT Vd.4S, Vn.16B, Vm.4B[i].
#define SDOTLANE(d, n, m, i) WORD $(0x4f80e000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
// SDOT adds to each lane the products of its 4 bytes: SDOT Vd.4S, Vn.16B, Vm.16B.
#define SDOT(d, n, m) WORD $(0x4e809400 | (m)<<16 | (n)<<5 | (d))

// FMULLANE and FMLALANE multiply by lane i of m: FMUL and FMLA Vd.4S, Vn.4S, Vm.S[i].
#define FMULLANE(d, n, m, i) WORD $(0x4f809000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define FMLALANE(d, n, m, i) WORD $(0x4f801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

#define FMLA4(d, n, m) WORD $(0x4e20cc00 | (m)<<16 | (n)<<5 | (d))
#define FMUL4(d, n, m) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))
#define FADD4(d, n, m) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d))
#define FADDP4(d, n, m) WORD $(0x6e20d400 | (m)<<16 | (n)<<5 | (d))
#define ADDP4(d, n, m) WORD $(0x4ea0bc00 | (m)<<16 | (n)<<5 | (d))

// SCVTF4 and UCVTF4 convert integers to float32.
#define SCVTF4(d, n) WORD $(0x4e21d800 | (n)<<5 | (d))
#define UCVTF4(d, n) WORD $(0x6e21d800 | (n)<<5 | (d))

// FCVTLHS converts the lower 4 float16 to float32, FCVTLHS2 the upper.
#define FCVTLHS(d, n) WORD $(0x0e217800 | (n)<<5 | (d))
#define FCVTLHS2(d, n) WORD $(0x4e217800 | (n)<<5 | (d))

// SXTLBH and SXTLHS widen the lower lanes with their sign, bytes to 16 bits and
// those to 32 bits; with 2, the upper lanes.
#define SXTLBH(d, n) WORD $(0x0f08a400 | (n)<<5 | (d))
#define SXTLBH2(d, n) WORD $(0x4f08a400 | (n)<<5 | (d))
#define SXTLHS(d, n) WORD $(0x0f10a400 | (n)<<5 | (d))
#define SXTLHS2(d, n) WORD $(0x4f10a400 | (n)<<5 | (d))

// AND16, OR16, SUB16, SHR16, SHL16 and SLI16 work on 16 bytes. SLI16 shifts left
// and keeps what is below.
#define AND16(d, n, m) WORD $(0x4e201c00 | (m)<<16 | (n)<<5 | (d))
#define OR16(d, n, m) WORD $(0x4ea01c00 | (m)<<16 | (n)<<5 | (d))
#define SUB16(d, n, m) WORD $(0x6e208400 | (m)<<16 | (n)<<5 | (d))
#define SHR16(d, n, by) WORD $(0x6f000400 | (16-(by))<<16 | (n)<<5 | (d))
#define SLI16(d, n, by) WORD $(0x6f005400 | (8+(by))<<16 | (n)<<5 | (d))
// TBL16 looks the bytes of m up in n.
#define TBL16(d, n, m) WORD $(0x4e000000 | (m)<<16 | (n)<<5 | (d))

// USHL16 shifts bytes of n left by those of m, or right where these are negative.
#define USHL16(d, n, m) WORD $(0x6e204400 | (m)<<16 | (n)<<5 | (d))
#define ZIP1B(d, n, m) WORD $(0x4e003800 | (m)<<16 | (n)<<5 | (d))
// UXTLBH and UXTLHS are SXTLBH and SXTLHS without a sign.
#define UXTLBH(d, n) WORD $(0x2f08a400 | (n)<<5 | (d))
#define UXTLBH2(d, n) WORD $(0x6f08a400 | (n)<<5 | (d))
#define UXTLHS(d, n) WORD $(0x2f10a400 | (n)<<5 | (d))
#define UXTLHS2(d, n) WORD $(0x6f10a400 | (n)<<5 | (d))
// LDQ loads 16 bytes from register n, off a multiple of 16: LDR Qt, [Xn, #off].
#define LDQ(t, n, off) WORD $(0x3dc00000 | ((off)>>4)<<10 | (n)<<5 | (t))
