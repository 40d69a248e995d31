package cpu

// The functions below add to totals [tokens, 8] the products of a number of blocks of
// 32 values of two panels with as many tokens as their name says. Values are signed
// as they are, so there is no bias for shift to undo.

//go:noescape
func multiplySigned32x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplySigned32x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplySigned32x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplyLow32x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplyLow32x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplyLow32x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplySigned16x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplySigned16x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplySigned16x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplyLow16x1NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplyLow16x2NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

//go:noescape
func multiplyLow16x4NEON(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)
