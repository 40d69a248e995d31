package cpu

import "github.com/realizar/realizar/tensor"

// multiplyRows are the rows of two panels.
const multiplyRows = 8

// A multiplyFunc multiplies for one number of tokens.
type multiplyFunc func(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks int)

// A width is a kernel for so many tokens.
type width struct {
	tokens          int
	signed32, low32 multiplyFunc
	signed16, low16 multiplyFunc
}

var widths = []width{
	{4, multiplySigned32x4NEON, multiplyLow32x4NEON, multiplySigned16x4NEON, multiplyLow16x4NEON},
	{2, multiplySigned32x2NEON, multiplyLow32x2NEON, multiplySigned16x2NEON, multiplyLow16x2NEON},
	{1, multiplySigned32x1NEON, multiplyLow32x1NEON, multiplySigned16x1NEON, multiplyLow16x1NEON},
}

// of is the kernel for a format.
func (w *width) of(f *blockFormat) multiplyFunc {
	switch {
	case f.sub == 32 && f.signed:
		return w.signed32
	case f.sub == 32:
		return w.low32
	case f.signed:
		return w.signed16
	}
	return w.low16
}

// multiplyNEON covers the tokens with the kernels of widths, the widest first.
func multiplyNEON(f *blockFormat, totals []float32, panel []byte, panelBytes int, scales []float32, scaleFloats int, x []byte, stride, tokens, blocks int) {
	t := 0
	for i := range widths {
		w := &widths[i]
		multiply := w.of(f)
		for ; t+w.tokens <= tokens; t += w.tokens {
			multiply(&totals[t*multiplyRows], &panel[0], panelBytes, &scales[0], 4*scaleFloats, &x[t*stride], stride, blocks)
		}
	}
}

func assemblyUnpack(f func(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)) unpackFunc {
	return func(panel []byte, scales []float32, w []byte, stride, blocks int, next *byte) {
		f(&panel[0], &scales[0], &w[0], stride, blocks, next)
	}
}

var quantizedNEON = quantizedKernels{rows: genericRows, panels: 2, unpack: unpacksNEON(), multiply: multiplyNEON}

// unpacksNEON are the generic ones where there is none in assembly: their panels are
// the same.
func unpacksNEON() map[tensor.DType]unpackFunc {
	all := genericUnpacks()
	all[tensor.Q4_0] = assemblyUnpack(unpackQ4_0NEON)
	all[tensor.IQ4_NL] = assemblyUnpack(unpackIQ4_NLNEON)
	all[tensor.Q8_0] = assemblyUnpack(unpackQ8_0NEON)
	all[tensor.Q4_K] = assemblyUnpack(unpackQ4_KNEON)
	all[tensor.Q5_K] = assemblyUnpack(unpackQ5_KNEON)
	all[tensor.Q6_K] = assemblyUnpack(unpackQ6_KNEON)
	return all
}
