package cpu

import (
	"encoding/binary"
	"math"

	"github.com/realizar/realizar/tensor"
)

// Products of quantised weights and records. In every block of 32 values, or of
// 16 where a format has a scale for so many, the sum of products is an exact
// integer; these are scaled and added in ascending order,
//
//	total = total + float32(sum)*(scale*d)
//	total = total + low*m    (formats with a minimum; m is d times the sum of q)
//
// so that the bits of a product are those of its row and its record, whether one
// record is multiplied or thousands.
//
// The work is done on panels: the values of a few rows side by side, four
// neighbours of one row in 32 bits, [k/4][rows][4], with the scales beside them,
// [k/sub][rows] or [k/sub][2][rows] with the minima.

// A blockFormat is a format of quantised weights.
type blockFormat struct {
	values int  // of a block
	bytes  int  // of a block
	sub    int  // values that share a scale: 32 or 16
	signed bool // values are signed; otherwise there are minima
	// What the numbers in a block exceed signed values by is 128>>shift, where
	// they are unsigned.
	shift int
}

var blockFormats = map[tensor.DType]*blockFormat{
	tensor.Q4_0:   {32, 18, 32, true, 4},
	tensor.Q4_1:   {32, 20, 32, false, 0},
	tensor.Q5_0:   {32, 22, 32, true, 3},
	tensor.Q5_1:   {32, 24, 32, false, 0},
	tensor.Q8_0:   {32, 34, 32, true, 0},
	tensor.IQ4_NL: {32, 18, 32, true, 0},
	tensor.MXFP4:  {32, 17, 32, true, 0},
	tensor.Q2_K:   {256, 84, 16, false, 0},
	tensor.Q3_K:   {256, 110, 16, true, 5},
	tensor.Q4_K:   {256, 144, 32, false, 0},
	tensor.Q5_K:   {256, 176, 32, false, 0},
	tensor.Q6_K:   {256, 210, 16, true, 2},
	tensor.IQ4_XS: {256, 136, 32, true, 0},
}

// scales is how many float32 a panel has for one row of k values.
func (f *blockFormat) scales(k int) int {
	if f.signed {
		return k / f.sub
	}
	return 2 * k / f.sub
}

// room is what a fusedFunc needs for each row.
func (f *blockFormat) room() int { return f.scales(f.values) + f.values/f.sub }

// quantizedKernels multiply quantised weights.
type quantizedKernels struct {
	rows   int // of a panel
	panels int // that multiply takes side by side
	unpack map[tensor.DType]unpackFunc
	fused  map[tensor.DType]fusedFunc // where there is one
	// multiply adds to totals [tokens, panels*rows] the products of a number of
	// blocks of 32 values of panels, panelBytes and scaleFloats apart, with
	// records stride bytes apart.
	multiply func(f *blockFormat, totals []float32, panel []byte, panelBytes int, scales []float32, scaleFloats int, x []byte, stride, tokens, blocks int)
}

// An unpackFunc turns a number of blocks of rows of w, stride bytes apart, into a
// panel, and prefetches as many bytes from next.
type unpackFunc func(panel []byte, scales []float32, w []byte, stride, blocks int, next *byte)

// A fusedFunc adds to totals [groups*rows] the products of groups of rows of w, of a
// number of blocks and stride bytes each, with record x. It needs room for the
// scales of a block and as many sums, of [blockFormat.room] for a row.
type fusedFunc func(totals, scales []float32, x, w []byte, stride, blocks, groups int, next *byte)

// genericRows are the rows of a panel for plain Go.
const genericRows = 4

var quantizedGeneric = quantizedKernels{rows: genericRows, panels: 1, unpack: genericUnpacks(), multiply: multiplyGeneric}

func genericUnpacks() map[tensor.DType]unpackFunc {
	all := map[tensor.DType]unpackFunc{}
	for d, f := range blockFormats {
		all[d] = func(panel []byte, scales []float32, w []byte, stride, blocks int, _ *byte) {
			var b block
			const rows = genericRows
			for i := range blocks {
				for r := range rows {
					b.decode(d, w[r*stride+i*f.bytes:][:f.bytes])
					for j := range f.values {
						k := i*f.values + j
						panel[k/4*4*rows+4*r+k%4] = byte(b.q[j])
					}
					for j := range f.values / f.sub {
						s := i*f.values/f.sub + j
						if f.signed {
							scales[s*rows+r] = b.scale[j]
						} else {
							scales[2*s*rows+r], scales[(2*s+1)*rows+r] = b.scale[j], b.low[j]
						}
					}
				}
			}
		}
	}
	return all
}

func multiplyGeneric(f *blockFormat, totals []float32, panel []byte, _ int, scales []float32, _ int, x []byte, stride, tokens, blocks int) {
	le := binary.LittleEndian
	const rows = genericRows
	for t := range tokens {
		for r := range rows {
			total := totals[t*rows+r]
			for b := range blocks {
				record := x[t*stride+b*recordBlockBytes:][:recordBlockBytes]
				d := math.Float32frombits(le.Uint32(record[recordD:]))
				for part := range recordBlock / f.sub {
					var sum int32
					for k := part * f.sub; k < (part+1)*f.sub; k++ {
						sum += int32(int8(panel[(b*recordBlock+k)/4*4*rows+4*r+k%4])) * int32(int8(record[k]))
					}
					s := b*recordBlock/f.sub + part
					if f.signed {
						total += float32(sum) * (scales[s*rows+r] * d)
						continue
					}
					m := record[recordM32:]
					if f.sub == 16 {
						m = record[recordM16+4*part:]
					}
					total += float32(sum) * (scales[2*s*rows+r] * d)
					total += scales[(2*s+1)*rows+r] * math.Float32frombits(le.Uint32(m))
				}
			}
			totals[t*rows+r] = total
		}
	}
}
