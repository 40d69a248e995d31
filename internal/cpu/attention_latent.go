package cpu

import "github.com/realizar/realizar/tensor"

// Latent attention reads keys as rows: the values, which are the beginning of each row, need them
// so. All query heads share a row, so that a tile has many queries even for one token. Products of
// queries and rows are those of float32 weights: rows are converted to float32, eight at a time,
// for all queries of the tile.

// scoreRows sets score [rows, n], with rows scoreStride apart, to the products of queries q [rows,
// headDim] and n keys. load writes key i to x.
func (j *attentionJob) scoreRows(d *attentionDesk, q, score []float32, rows, n int, load func(d *attentionDesk, x []float32, i int)) {
	dim := j.a.HeadDim
	stride := rowStride(dim)
	for p := 0; p < n; p += dotRows {
		keys := min(dotRows, n-p)
		for i := range keys {
			load(d, d.keys[i*stride:][:dim], p+i)
		}
		for r := 0; r < rows; r += dotTokens {
			queries := min(dotTokens, rows-r)
			j.e.tier.dots(d.dots, d.keys, q[r*stride:], dim, stride, queries)
			for i := range queries {
				copy(score[(r+i)*scoreStride+p:][:keys], d.dots[i*dotRows:])
			}
		}
	}
}

// rowOfStretch writes key i of the stretch d.at to x.
func (j *attentionJob) rowOfStretch(d *attentionDesk, x []float32, i int) {
	j.rowLoader(x, &d.at, i, d.block)
}

// A rowLoader writes row p of s to x in float32. block is scratch memory of the size of x in the
// format of the cache.
type rowLoader func(x []float32, s *stretch, p int, block []byte)

// rowLoader returns the tier's loader of rows of a cache of dtype d. The rows of a Q8_0 cache get
// the layout of a file's first; those of an F8_E4M3 cache are values with a weight of 1.
func (t *tier) rowLoader(d tensor.DType) rowLoader {
	if d == tensor.F8_E4M3 {
		add, weight := t.attention.caches[d].weighted, []float32{1}
		return func(x []float32, s *stretch, p int, _ []byte) {
			clear(x)
			row := stretch{numbers: s.numbers[p*s.width:], scales: s.scales[2*p:], n: 1, width: s.width}
			row.next = row.numbers
			add(x, weight, 1, len(x), &row, len(x))
		}
	}
	convert := t.dequantizer(d)
	if d != tensor.Q8_0 {
		size := d.BlockBytes()
		return func(x []float32, s *stretch, p int, _ []byte) { convert(x, s.numbers[p*s.width*size:][:len(x)*size]) }
	}
	return func(x []float32, s *stretch, p int, block []byte) {
		const size = 2 + cacheBlock
		for i := range len(x) / cacheBlock {
			at := (p*s.width)/cacheBlock + i
			copy(block[i*size:], s.scales[2*at:2*at+2])
			copy(block[i*size+2:][:cacheBlock], s.numbers[at*cacheBlock:])
		}
		convert(x, block[:len(x)/cacheBlock*size])
	}
}

// summed returns how many columns of values are summed. Kernels for a Q8_0 cache sum whole blocks, so
// the columns after the values of a latent row are summed too. Nobody reads these sums.
func (j *attentionJob) summed() int {
	if j.pool.dtype == tensor.Q8_0 {
		return j.width
	}
	return j.values
}
