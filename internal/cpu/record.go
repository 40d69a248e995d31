package cpu

import (
	"encoding/binary"
	"math"
)

// A record is a row of k activations in 8 bits, for products with quantized weights. k is a
// multiple of recordBlock. Each block of 32 values takes 64 bytes: value i is d*q[i] with
// d = max|x|/127. The block also has the sums that formats with an offset or a minimum need.
// Numbers are little-endian:
//
//	 0  q   [32] int8
//	32  d   float32      scale
//	36  n32 int32        -128 * sum of q
//	40  m32 float32      d * sum of q
//	44      zero
//	48  n16 [2] int32    -128 * sum of q, of each half
//	56  m16 [2] float32  d * sum of q, of each half
//
// If a value is not finite, neither is the scale of its block, and so neither is any result. A
// block whose values are all below 2^-100 becomes zeros.
const (
	recordBlock      = 32
	recordBlockBytes = 64

	recordD   = 32
	recordN32 = 36
	recordM32 = 40
	recordN16 = 48
	recordM16 = 56
)

// recordBytes returns the length in bytes of a record of k values.
func recordBytes(k int) int { return k / recordBlock * recordBlockBytes }

// recordStride returns the distance between records in bytes: an odd number of cache lines, so that
// the same blocks of a few records do not compete for the same set of the cache.
func recordStride(k int) int { return (k/recordBlock | 1) * recordBlockBytes }

// quantizeGeneric writes the blocks of values lo to hi of x to the record of x. lo and hi are
// multiples of recordBlock.
func quantizeGeneric(record []byte, x []float32, lo, hi int) {
	le := binary.LittleEndian
	for b := lo / recordBlock; b < hi/recordBlock; b++ {
		values, block := x[b*recordBlock:][:recordBlock], record[b*recordBlockBytes:][:recordBlockBytes]
		var top uint32 // bits of the largest magnitude: NaN is above infinity, which is above all numbers
		for _, v := range values {
			top = max(top, math.Float32bits(v)&^(1<<31))
		}
		d := math.Float32frombits(top) / 127
		inverse := 127 / math.Float32frombits(top)
		if top < 27<<23 { // 2^-100
			d, inverse = 0, 0
		}
		var sums [2]int32
		for i, v := range values {
			q := int8(0)
			if top < 255<<23 {
				q = int8(math.RoundToEven(float64(v * inverse)))
			}
			block[i] = byte(q)
			sums[i/16] += int32(q)
		}
		le.PutUint32(block[32:], math.Float32bits(d))
		le.PutUint32(block[36:], uint32(-128*(sums[0]+sums[1])))
		le.PutUint32(block[40:], math.Float32bits(d*float32(sums[0]+sums[1])))
		le.PutUint32(block[44:], 0)
		for i, s := range sums {
			le.PutUint32(block[48+4*i:], uint32(-128*s))
			le.PutUint32(block[56+4*i:], math.Float32bits(d*float32(s)))
		}
	}
}

// recorded returns the values of a record.
func recorded(record []byte) []float32 {
	var x []float32
	for ; len(record) > 0; record = record[recordBlockBytes:] {
		d := math.Float32frombits(binary.LittleEndian.Uint32(record[recordD:]))
		for _, q := range record[:recordBlock] {
			x = append(x, d*float32(int8(q)))
		}
	}
	return x
}
