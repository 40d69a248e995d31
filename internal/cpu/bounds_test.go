package cpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// toHalf returns v rounded to float16.
func toHalf(v float64) float64 { return float64(tensor.F16ToF32(tensor.F32ToF16(float32(v)))) }

// asHalves returns the weights of a row as a GPU multiplies them with F16 activations, see
// internal/cuda/kernels/formats.cuh.
func asHalves(d tensor.DType, row []byte, values []float32) []float64 {
	f, w := d.Format(), make([]float64, len(values))
	for i, v := range values {
		if w[i] = toHalf(float64(v)); d == tensor.BF16 {
			w[i] = float64(v)
		}
	}
	if f.E4M3 {
		scale := func(b int) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(row[b*f.BlockBytes:])))
		}
		most := 0.0
		for b := range len(row) / f.BlockBytes {
			most = max(most, math.Abs(scale(b)))
		}
		for i, v := range values {
			d := scale(i / f.BlockLen)
			w[i] = toHalf(float64(v)/d*0x1p-8*toHalf(d/most*0x1p15)) * most * 0x1p-7
		}
	}
	if !f.InBytes {
		return w
	}
	type block struct {
		scale, low [16]float32
		codes      []int8
	}
	var blocks []block
	var scales, lows float64
	for ; len(row) > 0; row = row[f.BlockBytes:] {
		b := block{codes: make([]int8, f.BlockLen)}
		f.Codes(b.codes, row[:f.BlockBytes])
		f.Groups(&b.scale, &b.low, row[:f.BlockBytes])
		for g := range f.BlockLen / f.Group {
			scales, lows = max(scales, math.Abs(float64(b.scale[g]))), max(lows, math.Abs(float64(b.low[g])))
		}
		blocks = append(blocks, b)
	}
	_, s := math.Frexp(scales)
	_, m := math.Frexp(lows)
	power := math.Ldexp(1, max(s+24, m)+1-15) // of the row; a bit more than needed, as no group has the largest factor
	for i := range w {
		b, g := &blocks[i/f.BlockLen], i%f.BlockLen/f.Group
		scale, low := toHalf(float64(b.scale[g])*0x1p24/power), toHalf(float64(b.low[g])/power)
		w[i] = toHalf(float64(b.codes[i%f.BlockLen])*scale*0x1p-24+low) * power
	}
	return w
}

// A GPU's rounding stays within the bounds of a product, and the bounds are not much wider.
func TestBoundsOfHalves(t *testing.T) {
	const rows, cols = 40, 1024
	for _, d := range plantest.Dtypes {
		rng := rand.New(rand.NewPCG(uint64(d), 9))
		w := plantest.Weight(rng, "w", d, 0.05, rows, cols)
		p := precisionOf(d, &plan.Limits{Activations: tensor.F16})
		if slices.Contains([]tensor.DType{tensor.F32, tensor.F64}, d) {
			continue // multiplied in float32
		}
		values, worst := make([]float32, cols), 0.0
		for _, inputs := range []func() float64{
			rng.NormFloat64,
			func() float64 { return math.Abs(rng.NormFloat64()) },
			func() float64 { return rng.NormFloat64() * math.Pow(100, float64(rng.IntN(2))) },
			func() float64 { return rng.NormFloat64() * 1e-4 },
		} {
			x := make([]float32, cols)
			for i := range x {
				x[i] = float32(inputs())
			}
			in := multiplicand{x: x, size: math.Sqrt(squared(x))}
			for r := range rows {
				generic.dequantizer(d)(values, w.Row(r))
				row := p.row(values)
				y, bound := in.times(&row, 0)
				sum := 0.0
				for i, v := range asHalves(d, w.Row(r), values) {
					u := 64 * toHalf(float64(x[i])/64)
					if d == tensor.BF16 {
						u = float64(tensor.BF16ToF32(tensor.F32ToBF16(x[i])))
					}
					sum += v * u
				}
				worst = max(worst, math.Abs(sum-y)/bound)
			}
		}
		if t.Logf("%v: %.2f of the bound", d, worst); !(worst < 0.8 && worst > 0.1) {
			t.Errorf("%v: the errors are %.2g of the bound", d, worst)
		}
	}
}
