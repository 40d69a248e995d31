//go:build amd64 || arm64

package cpu

// An assemblyProduct adds to totals [groups][tokens][lanes], groups totalsStride bytes
// apart, the products of a number of blocks of groups of weights stride bytes apart
// and of records xStride bytes apart, for one number of tokens.
type assemblyProduct func(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

// A width is the kernel for so many tokens, and for a multiple of groups.
type width struct {
	tokens, groups int
	product        assemblyProduct
}

// productBy covers the tokens with the kernels of widths, the widest first.
func productBy(lanes int, widths ...width) productFunc {
	return func(totals []float32, w section, x []byte, stride, tokens int) {
		t := 0
		for i := range widths {
			if w.groups%widths[i].groups != 0 {
				continue
			}
			for n := widths[i].tokens; t+n <= tokens; t += n {
				widths[i].product(&totals[t*lanes], 4*lanes*tokens, &w.words[0], &w.heads[0], w.stride, &x[t*stride], stride, w.blocks, w.groups)
			}
		}
	}
}

// assemblyWords is a kernel with the slices of package cpu.
func assemblyWords(interleave func(to, from *byte, stride, words int)) wordsFunc {
	return func(to, from []byte, stride, words int) { interleave(&to[0], &from[0], stride, words) }
}
