package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan/plantest"
	weights "github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/tensor"
)

// fillings are the blocks that kernels must be right for: ordinary ones, any bits
// with scales that are numbers, and all bits set or clear but for the scales.
var fillings = []string{"random", "wild", "ones", "zeros", "subnormal"}

// filled is rows of weights in format d.
func filled(t testing.TB, rng *rand.Rand, filling string, d tensor.DType, rows, k int) []byte {
	w := plantest.Weight(rng, "w", d, 0.5, rows, k)
	data := guarded(t, len(w.Data))
	copy(data, w.Data)
	if filling == "random" {
		return data
	}
	f := blockFormats[d]
	for b := 0; b < len(data); b += f.bytes {
		block := data[b : b+f.bytes]
		before := slices.Clone(block)
		for i := range block {
			switch filling {
			case "wild", "subnormal":
				block[i] = byte(rng.Uint32())
			case "ones":
				block[i] = 255
			case "zeros":
				block[i] = 0
			}
		}
		if d == tensor.MXFP4 {
			block[0] = byte(rng.IntN(200)) // an exponent, well within float32
		}
		for _, at := range weights.Scales(d) { // finite
			if filling == "subnormal" {
				binary.LittleEndian.PutUint16(block[at:], uint16(rng.IntN(1024)))
			} else {
				copy(block[at:at+2], before[at:])
			}
		}
	}
	return data
}

// decoded is what a row of weights stands for: values, and per value its scale and
// minimum.
func decoded(d tensor.DType, row []byte) (q, scale, low []float64) {
	f := blockFormats[d]
	for ; len(row) > 0; row = row[f.bytes:] {
		var b block
		b.decode(d, row[:f.bytes])
		for i := range f.values {
			q = append(q, float64(b.q[i]))
			scale = append(scale, float64(b.scale[i/f.sub]))
			low = append(low, float64(b.low[i/f.sub]))
		}
	}
	return q, scale, low
}

// The decoders agree with package tensor.
func TestBlockDecoders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for d, f := range blockFormats {
		for _, filling := range fillings {
			data := filled(t, rng, filling, d, 1, 8*f.values)
			want := make([]float32, 8*f.values)
			if err := tensor.Dequantize(d, want, data); err != nil {
				t.Fatal(err)
			}
			q, scale, low := decoded(d, data)
			for i, v := range want {
				got := scale[i]*q[i] + low[i]
				if math.Abs(got-float64(v)) > 1e-6*(math.Abs(scale[i]*q[i])+math.Abs(low[i])) {
					t.Fatalf("%v, %s: value %d is %v, want %v", d, filling, i, got, v)
				}
			}
		}
	}
}

// records are rows of activations: ordinary ones, zeros, and the largest values.
func records(t testing.TB, rng *rand.Rand, tokens, k int) (x [][]float32, packed []byte) {
	packed = guarded(t, tokens*recordBytes(k))
	for t := range tokens {
		row := random(rng, k)
		switch t % 4 {
		case 1:
			for i := range row {
				row[i] = float32(math.Copysign(1, float64(row[i]))) // -127 or 127 everywhere
			}
		case 2:
			clear(row[:k/2])
		case 3:
			for i := range row {
				row[i] = -2
			}
		}
		x = append(x, row)
		quantizeGeneric(packed[t*recordBytes(k):][:recordBytes(k)], row, 0, k)
	}
	return x, packed
}

const canary = 12345

func canaries(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = canary
	}
	return v
}

// Every tier's products agree with float64 on the same 8-bit activations, write
// nothing else, and have the same bits for any number of tokens, for panels and
// without.
func TestQuantizedProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, tier := range tiers() {
		kernels := tier.quantized
		for d, f := range blockFormats {
			for _, k := range []int{f.values, 2 * f.values, 3 * f.values, max(768, f.values)} {
				for _, filling := range fillings {
					testProducts(t, rng, tier.name, kernels, d, k, filling)
				}
			}
		}
	}
}

func testProducts(t *testing.T, rng *rand.Rand, tier string, kernels *quantizedKernels, d tensor.DType, k int, filling string) {
	f := blockFormats[d]
	rows, tokens := kernels.rows*kernels.panels, 14
	w := filled(t, rng, filling, d, rows, k)
	stride := len(w) / rows
	_, x := records(t, rng, tokens, k)
	what := fmt.Sprintf("%s, %v, k %d, %s", tier, d, k, filling)

	panelBytes, scaleFloats := kernels.rows*k, kernels.rows*f.scales(k)
	panel, scales := make([]byte, kernels.panels*panelBytes+64), canaries(kernels.panels*scaleFloats+16)
	for p := range kernels.panels {
		kernels.unpack[d](panel[p*panelBytes:], scales[p*scaleFloats:], w[p*kernels.rows*stride:], stride, k/f.values, &w[0])
	}
	if slices.ContainsFunc(panel[kernels.panels*panelBytes:], func(b byte) bool { return b != 0 }) || slices.Index(scales, canary) != kernels.panels*scaleFloats {
		t.Fatalf("%s: more than the panel was written", what)
	}
	for n := 1; n <= tokens; n++ {
		totals := canaries(n*rows + 16)
		clear(totals[:n*rows])
		kernels.multiply(f, totals, panel, panelBytes, scales, scaleFloats, x, recordBytes(k), n, k/recordBlock)
		if slices.Index(totals, canary) != n*rows {
			t.Fatalf("%s, %d tokens: more than the totals was written", what, n)
		}
		for token := range n {
			for row := range rows {
				if n == tokens {
					want, size := product8(d, w[row*stride:][:stride], x[token*recordBytes(k):][:recordBytes(k)])
					if got := float64(totals[token*rows+row]); !(math.Abs(got-want) <= 2e-6*size+1e-40) {
						t.Fatalf("%s: product of row %d and token %d is %v, want %v (of %v)", what, row, token, got, want, size)
					}
				}
			}
			one := make([]float32, rows)
			kernels.multiply(f, one, panel, panelBytes, scales, scaleFloats, x[token*recordBytes(k):], recordBytes(k), 1, k/recordBlock)
			if !slices.Equal(one, totals[token*rows:][:rows]) {
				t.Fatalf("%s: token %d of %d has other bits than alone", what, token, n)
			}
			if kernels.fused[d] == nil || n > 1 && n < tokens {
				continue
			}
			for groups := 1; groups <= kernels.panels; groups++ {
				fused := canaries(groups*kernels.rows + 16)
				clear(fused[:groups*kernels.rows])
				room := canaries(kernels.rows*f.room() + 16)
				from := kernels.panels - groups // so that the last row ends where reading must
				kernels.fused[d](fused, room, x[token*recordBytes(k):], w[from*kernels.rows*stride:], stride, k/f.values, groups, &w[0])
				if got, want := fused[:groups*kernels.rows], one[from*kernels.rows:]; !slices.Equal(got, want) {
					t.Fatalf("%s: token %d, %d groups have other bits without a panel:\n%v\n%v", what, token, groups, got, want)
				}
				if slices.Index(fused, canary) != groups*kernels.rows || slices.ContainsFunc(room[kernels.rows*f.room():], func(v float32) bool { return v != canary }) {
					t.Fatalf("%s: without a panel more than the totals was written", what)
				}
			}
		}
	}
}

// product8 is the product of a row of weights and a record in float64, and the sum
// of the sizes of what it adds up.
func product8(d tensor.DType, row, record []byte) (sum, size float64) {
	q, scale, low := decoded(d, row)
	for i := range q {
		b := record[i/recordBlock*recordBlockBytes:]
		x := float64(int8(b[i%recordBlock])) * float64(math.Float32frombits(binary.LittleEndian.Uint32(b[recordD:])))
		sum += (q[i]*scale[i] + low[i]) * x
		size += (math.Abs(q[i]*scale[i]) + math.Abs(low[i])) * math.Abs(x)
	}
	return sum, size
}

func BenchmarkQuantized(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	const k = 2048
	for _, tier := range tiers() {
		kernels := tier.quantized
		rows := kernels.rows * kernels.panels
		for _, d := range plantest.Dtypes {
			f := blockFormats[d]
			if f == nil {
				continue
			}
			w := plantest.Weight(rng, "w", d, 0.5, rows, k)
			stride := len(w.Data) / rows
			_, x := records(b, rng, 48, k)
			panelBytes, scaleFloats := kernels.rows*k, kernels.rows*f.scales(k)
			panel, scales, totals := make([]byte, kernels.panels*panelBytes), make([]float32, kernels.panels*scaleFloats), make([]float32, 48*rows)
			name := fmt.Sprintf("%s/%v/", tier.name, d)
			b.Run(name+"unpack", func(b *testing.B) {
				b.SetBytes(int64(len(w.Data)))
				for b.Loop() {
					for p := range kernels.panels {
						kernels.unpack[d](panel[p*panelBytes:], scales[p*scaleFloats:], w.Data[p*kernels.rows*stride:], stride, k/f.values, &w.Data[0])
					}
				}
			})
			for _, n := range []int{1, 8, 48} {
				b.Run(fmt.Sprintf("%smultiply %d", name, n), func(b *testing.B) {
					b.SetBytes(int64(len(w.Data)))
					const chunk = 512 // as they are used, so that a panel is in the first-level cache
					for b.Loop() {
						for at := 0; at < k; at += chunk {
							kernels.multiply(f, totals, panel, panelBytes, scales, scaleFloats, x[at/recordBlock*recordBlockBytes:], recordBytes(k), n, chunk/recordBlock)
						}
					}
					b.ReportMetric(float64(n*rows*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			}
			if kernels.fused[d] == nil {
				continue
			}
			b.Run(name+"fused", func(b *testing.B) {
				b.SetBytes(int64(len(w.Data)))
				for b.Loop() {
					kernels.fused[d](totals, scales, x, w.Data, stride, k/f.values, kernels.panels, &w.Data[0])
				}
			})
		}
	}
}
