//go:build amd64 || arm64

package cpu

// assemblyUnpack is a kernel with the slices of package cpu.
func assemblyUnpack(f func(panel *byte, scales *float32, w *byte, stride, blocks int, next *byte)) unpackFunc {
	return func(panel []byte, scales []float32, w []byte, stride, blocks int, next *byte) {
		f(&panel[0], &scales[0], &w[0], stride, blocks, next)
	}
}

// A multiplyFunc multiplies for one number of tokens.
type multiplyFunc func(totals *float32, panel *byte, panelBytes int, scales *float32, scaleBytes int, x *byte, stride, blocks, shift int)

// A width is a kernel for so many tokens.
type width struct {
	tokens          int
	signed32, low32 multiplyFunc
	signed16, low16 multiplyFunc
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

// multiplyBy covers the tokens with the kernels of widths, the widest first.
func multiplyBy(rows int, widths ...width) func(f *blockFormat, totals []float32, panel []byte, panelBytes int, scales []float32, scaleFloats int, x []byte, stride, tokens, blocks int) {
	return func(f *blockFormat, totals []float32, panel []byte, panelBytes int, scales []float32, scaleFloats int, x []byte, stride, tokens, blocks int) {
		t := 0
		for i := range widths {
			w := &widths[i]
			multiply := w.of(f)
			for ; t+w.tokens <= tokens; t += w.tokens {
				multiply(&totals[t*rows], &panel[0], panelBytes, &scales[0], 4*scaleFloats, &x[t*stride], stride, blocks, f.shift)
			}
		}
	}
}
