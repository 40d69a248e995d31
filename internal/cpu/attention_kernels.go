package cpu

import (
	"math"

	"github.com/realizar/realizar/tensor"
)

const (
	// scoreStride is the distance of two rows of scores: a segment, plus what whole registers write
	// beyond it.
	scoreStride = contextSegment + 16
	// headUnit is the multiple to which rows of sums are rounded up, in values.
	headUnit = 16
)

// A stretch is n consecutive positions in one page, for one head: keys or values.
type stretch struct {
	numbers, scales []byte // from the first position on
	next            []byte // data to prefetch
	n               int
	width           int // row length of the matrix, in values
}

// attentionKernels are the inner loops of attention.
type attentionKernels struct {
	caches map[tensor.DType]cacheKernels

	// softWeights replaces each of rows rows of n scores by exp(score - top), where top is the
	// row's largest score, and sets total to their sum. n is a positive multiple of 16.
	softWeights func(score []float32, n, rows int, top, total []float32)
	// blend sets y to y*a + x*b. The length is a positive multiple of 16.
	blend func(y, x []float32, a, b float32)
	// scale sets y to x*a.
	scale func(y, x []float32, a float32)
	// halve sets y to x in float16.
	halve func(y []uint16, x []float32)
	// positives sets sum [n] to the sum over rows, in ascending order, of max(0, score) [rows, n], with
	// rows scoreStride apart, times the row's weight. n is rounded up to whole registers for reads and
	// writes. NaN stays NaN.
	positives func(sum, score, weight []float32, n int)
}

// cacheKernels are the loops over keys and values for one format of the cache.
type cacheKernels struct {
	// scores sets score [rows, n], with rows scoreStride apart, to the products of queries q [dim,
	// rows], with rows qWidth apart, and keys k [dim, n]. Each sum runs over dim in ascending
	// order. n is rounded up to whole registers for reads and writes.
	scores func(score, q []float32, rows, qWidth int, k *stretch, dim int)
	// weighted adds to sum [rows, dim], with rows width apart, the values v [n, dim] times their
	// weights [rows, n], with rows scoreStride apart, in ascending order. dim is rounded up to
	// whole registers for reads and writes.
	weighted func(sum, weight []float32, rows, width int, v *stretch, dim int)
}

var attentionGeneric = attentionKernels{
	caches: map[tensor.DType]cacheKernels{
		tensor.F32:     genericCache(loadFloats),
		tensor.F16:     genericCache(loadHalves),
		tensor.Q8_0:    {scores: scoresScaled, weighted: weightedScaled},
		tensor.F8_E4M3: {scores: scoresWhole, weighted: weightedWhole},
	},
	softWeights: softWeights,
	blend: func(y, x []float32, a, b float32) {
		for i, v := range x[:len(y)] {
			y[i] = y[i]*a + v*b
		}
	},
	scale: func(y, x []float32, a float32) {
		for i := range y {
			y[i] = x[i] * a
		}
	},
	halve: func(y []uint16, x []float32) {
		for i, v := range x[:len(y)] {
			y[i] = tensor.F32ToF16(v)
		}
	},
	positives: positives,
}

func positives(sum, score, weight []float32, n int) {
	clear(sum[:n])
	for r, w := range weight {
		for i, s := range score[r*scoreStride:][:n] {
			sum[i] += w * max(0, s)
		}
	}
}

func softWeights(score []float32, n, rows int, top, total []float32) {
	for r := range rows {
		row := score[r*scoreStride:][:n]
		largest := row[0]
		for _, v := range row {
			largest = max(largest, v)
		}
		var sum float32
		for i, v := range row {
			row[i] = float32(math.Exp(float64(v - largest)))
			sum += row[i]
		}
		top[r], total[r] = largest, sum
	}
}

func loadFloats(y []float32, numbers []byte, at int) { copy(y, words[float32](numbers)[at:]) }

func loadHalves(y []float32, numbers []byte, at int) {
	for i, h := range words[uint16](numbers)[at:][:len(y)] {
		y[i] = tensor.F16ToF32(h)
	}
}

func loadBytes(y []float32, numbers []byte, at int) {
	for i, c := range words[int8](numbers)[at:][:len(y)] {
		y[i] = float32(c)
	}
}

// halfOfE4M3 returns a 256th of an E4M3 number: the float16 with its sign, exponent and mantissa.
// NaN, which caches do not contain, becomes another number.
func halfOfE4M3(code byte) float32 {
	return tensor.F16ToF32(uint16(code&0x80)<<8 | uint16(code&0x7f)<<7)
}

var halvesOfE4M3 = func() (values [256]float32) {
	for code := range values {
		values[code] = halfOfE4M3(byte(code))
	}
	return values
}()

func loadE4M3(y []float32, numbers []byte, at int) {
	for i, c := range numbers[at:][:len(y)] {
		y[i] = halvesOfE4M3[c]
	}
}

// A numberLoader sets y to the len(y) numbers from index at on.
type numberLoader func(y []float32, numbers []byte, at int)

func genericCache(load numberLoader) cacheKernels {
	return cacheKernels{
		scores: func(score, q []float32, rows, qWidth int, k *stretch, dim int) {
			var buf [contextSegment]float32
			key := buf[:k.n]
			for r := range rows {
				clear(score[r*scoreStride:][:k.n])
			}
			for d := range dim {
				load(key, k.numbers, d*k.width)
				addProducts(score, q[d*qWidth:][:rows], key)
			}
		},
		weighted: func(sum, weight []float32, rows, width int, v *stretch, dim int) {
			var buf [contextSegment]float32
			for lo := 0; lo < dim; lo += len(buf) {
				value := buf[:min(len(buf), dim-lo)]
				for p := range v.n {
					load(value, v.numbers, p*v.width+lo)
					addWeighted(sum[lo:], weight[p:], rows, width, value)
				}
			}
		},
	}
}

// addProducts adds q[r]*key to row r of the scores.
func addProducts(score, q, key []float32) {
	for r, x := range q {
		row := score[r*scoreStride:][:len(key)]
		for i, v := range key {
			row[i] += x * v
		}
	}
}

// addWeighted adds value times the first weight of each row to that row of sum.
func addWeighted(sum, weight []float32, rows, width int, value []float32) {
	for r := range rows {
		w, row := weight[r*scoreStride], sum[r*width:][:len(value)]
		for i, x := range value {
			row[i] += w * x
		}
	}
}

func scoresScaled(score, q []float32, rows, qWidth int, k *stretch, dim int) {
	var keys, scaling [contextSegment]float32
	key, scale := keys[:k.n], scaling[:k.n]
	for r := range rows {
		clear(score[r*scoreStride:][:k.n])
	}
	for d := range dim {
		if d%cacheBlock == 0 {
			loadHalves(scale, k.scales, d/cacheBlock*k.width)
		}
		loadBytes(key, k.numbers, d*k.width)
		for i := range key {
			key[i] *= scale[i]
		}
		addProducts(score, q[d*qWidth:][:rows], key)
	}
}

func weightedScaled(sum, weight []float32, rows, width int, v *stretch, dim int) {
	var value [cacheBlock]float32
	scales := words[uint16](v.scales)
	for lo := 0; lo < dim; lo += cacheBlock {
		part := value[:min(cacheBlock, dim-lo)]
		for p := range v.n {
			loadBytes(part, v.numbers, p*v.width+lo)
			scale := tensor.F16ToF32(scales[(p*v.width+lo)/cacheBlock])
			for i := range part {
				part[i] *= scale
			}
			addWeighted(sum[lo:], weight[p:], rows, width, part)
		}
	}
}

// scoresWhole and weightedWhole are for one scale for each key and value.
func scoresWhole(score, q []float32, rows, qWidth int, k *stretch, dim int) {
	productsOfE4M3.scores(score, q, rows, qWidth, k, dim)
	var scaling [contextSegment]float32
	scale := scaling[:k.n]
	loadHalves(scale, k.scales, 0)
	for r := range rows {
		row := score[r*scoreStride:][:k.n]
		for i, by := range scale {
			row[i] *= by
		}
	}
}

var productsOfE4M3 = genericCache(loadE4M3)

func weightedWhole(sum, weight []float32, rows, width int, v *stretch, dim int) {
	var buf [contextSegment]float32
	for lo := 0; lo < dim; lo += len(buf) {
		value := buf[:min(len(buf), dim-lo)]
		for p := range v.n {
			loadE4M3(value, v.numbers, p*v.width+lo)
			by := tensor.F16ToF32(words[uint16](v.scales)[p])
			for i := range value {
				value[i] *= by
			}
			addWeighted(sum[lo:], weight[p:], rows, width, value)
		}
	}
}
