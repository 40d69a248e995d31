package cpu

// The functions below are of type assemblyProduct, for 4 lanes and as many tokens as
// their name says.

//go:noescape
func productQ4_0x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_0x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_0x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_0x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_1x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_1x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_1x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_1x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_0x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_0x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_0x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_0x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_1x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_1x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_1x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_1x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ8_0x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ8_0x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ8_0x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ8_0x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_NLx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_NLx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_NLx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_NLx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productMXFP4x1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productMXFP4x2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productMXFP4x4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productMXFP4x8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ2_Kx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ2_Kx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ2_Kx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ2_Kx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ3_Kx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ3_Kx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ3_Kx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ3_Kx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_Kx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_Kx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_Kx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ4_Kx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_Kx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_Kx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_Kx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ5_Kx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ6_Kx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ6_Kx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ6_Kx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productQ6_Kx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_XSx1NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_XSx2NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_XSx4NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

//go:noescape
func productIQ4_XSx8NEON(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)
