package cpu

import (
	"encoding/binary"
	"math"

	"github.com/realizar/realizar/tensor"
)

// Products of quantized weights and records. For every block of 32 values, or of 16 if a format has
// a scale for 16, the sum of products is an exact integer. These sums are scaled and added in
// ascending order,
//
//	total = total + float32(sum)*(scale*d)
//	total = total + low*m    (formats with a minimum; m is d times the sum of q)
//
// so that the bits of a product depend only on its row and its record, for any number of records.
//
// Weights are in the layout of [interleaved].

// A blockFormat is a format of quantized weights.
type blockFormat struct {
	values int  // per block
	bytes  int  // per block
	sub    int  // values that share a scale: 32 or 16
	signed bool // values are signed; otherwise blocks have minima
	head   head
}

// A head is the part of a block that contains its scales: count numbers of width bytes from byte at
// on. The rest of a block is 32-bit words.
type head struct{ at, count, width int }

func (h head) bytes() int { return h.count * h.width }

// quantizedKernels multiply quantized weights.
type quantizedKernels struct {
	lanes    int       // number of interleaved rows
	words    wordsFunc // interleaves words; nil for plain Go
	products map[tensor.DType]productFunc
}

// A productFunc adds to totals [groups][tokens][lanes] the products of w and of records that are
// stride bytes apart.
type productFunc func(totals []float32, w section, x []byte, stride, tokens int)

// genericLanes is the number of lanes of plain Go.
const genericLanes = 4

var quantizedGeneric = quantizedKernels{lanes: genericLanes, products: genericProducts(genericLanes)}

// genericProducts returns the products of weights with any number of lanes.
func genericProducts(lanes int) map[tensor.DType]productFunc {
	all := map[tensor.DType]productFunc{}
	for d, f := range blockFormats {
		format := d.Format()
		all[d] = func(totals []float32, w section, x []byte, stride, tokens int) {
			var b block
			var src [maxBlockBytes]byte
			for g := range w.groups {
				for r := range lanes {
					for i := range w.blocks {
						w.block(src[:f.bytes], f, lanes, g, i, r)
						b.decode(&format, src[:f.bytes])
						for t := range tokens {
							total := &totals[(g*tokens+t)*lanes+r]
							*total = b.multiply(f, *total, x[t*stride+i*f.values/recordBlock*recordBlockBytes:])
						}
					}
				}
			}
		}
	}
	return all
}

// multiply adds to total the product of the block and its part of a record.
func (b *block) multiply(f *blockFormat, total float32, x []byte) float32 {
	le := binary.LittleEndian
	for s := range f.values / f.sub {
		record, part := x[s*f.sub/recordBlock*recordBlockBytes:], s*f.sub%recordBlock/f.sub
		var sum int32
		for k, q := range b.q[s*f.sub:][:f.sub] {
			sum += int32(q) * int32(int8(record[part*f.sub+k]))
		}
		total += float32(sum) * (b.scale[s] * math.Float32frombits(le.Uint32(record[recordD:])))
		if f.signed {
			continue
		}
		m := record[recordM32:]
		if f.sub == 16 {
			m = record[recordM16+4*part:]
		}
		total += b.low[s] * math.Float32frombits(le.Uint32(m))
	}
	return total
}
