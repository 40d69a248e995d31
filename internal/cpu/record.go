package cpu

import (
	"encoding/binary"
	"math"
)

// A record is a row of k activations in 8 bits, for products with quantised
// weights: in every block of 32, value i is d*q[i] with d = max|x|/127. Beside
// these it holds the sums that formats with an offset or a minimum need, over 32
// and over 16 values. All numbers are little-endian, the sections follow each
// other without gaps:
//
//	q   [k]    int8     values
//	d   [k/32] float32  scale of each block
//	n32 [k/32] int32    -128 * sum of q over 32
//	m32 [k/32] float32  d * sum of q over 32
//	n16 [k/16] int32    -128 * sum of q over 16
//	m16 [k/16] float32  d * sum of q over 16
//
// A block with a value that is not finite has a scale that is not finite, so that
// whatever is computed from it is not finite either. A block without a value of
// 2^-100 or more counts as zeros.
const recordBlock = 32

// recordBytes is the length of a record of k values, k a multiple of recordBlock.
func recordBytes(k int) int { return k + 7*k/8 }

// Where the sections of a record of k values begin.
func recordD(k int) int   { return k }
func recordN32(k int) int { return k + k/8 }
func recordM32(k int) int { return k + k/4 }
func recordN16(k int) int { return k + 3*k/8 }
func recordM16(k int) int { return k + 5*k/8 }

// quantizeGeneric writes the blocks of values lo to hi of x, multiples of
// recordBlock, to the record of x.
func quantizeGeneric(record []byte, x []float32, lo, hi int) {
	k := len(x)
	le := binary.LittleEndian
	for b := lo / recordBlock; b < hi/recordBlock; b++ {
		values := x[b*recordBlock:][:recordBlock]
		var top uint32 // largest magnitude: as bits, NaN is above infinity and that above all numbers
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
			record[b*recordBlock+i] = byte(q)
			sums[i/16] += int32(q)
		}
		le.PutUint32(record[recordD(k)+4*b:], math.Float32bits(d))
		le.PutUint32(record[recordN32(k)+4*b:], uint32(-128*(sums[0]+sums[1])))
		le.PutUint32(record[recordM32(k)+4*b:], math.Float32bits(d*float32(sums[0]+sums[1])))
		for i, s := range sums {
			le.PutUint32(record[recordN16(k)+8*b+4*i:], uint32(-128*s))
			le.PutUint32(record[recordM16(k)+8*b+4*i:], math.Float32bits(d*float32(s)))
		}
	}
}
