//go:build amd64 || arm64

package cpu

// An assemblyProduct adds to totals [groups][tokens][lanes], with groups totalsStride bytes apart,
// the products of groups of weights that are stride bytes apart and records that are xStride bytes
// apart. blocks and groups are the numbers of blocks and groups. The number of tokens is fixed.
type assemblyProduct func(totals *float32, totalsStride int, words, heads *byte, stride int, x *byte, xStride, blocks, groups int)

// A width is a kernel with its number of tokens; the number of groups is a multiple of groups.
type width struct {
	tokens, groups int
	product        assemblyProduct
}

// productBy covers the tokens with the kernels of widths, widest first.
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

// assemblyWords returns a wordsFunc that calls interleave.
func assemblyWords(interleave func(to, from *byte, stride, words int)) wordsFunc {
	return func(to, from []byte, stride, words int) { interleave(&to[0], &from[0], stride, words) }
}
