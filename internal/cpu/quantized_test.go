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

// fillings are kinds of blocks: ordinary ones, random bits with finite scales, all bits set or
// clear except scales, and subnormal scales.
var fillings = []string{"random", "wild", "ones", "zeros", "subnormal"}

// filled returns rows of weights in format d.
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

// decoded returns the values of a row of weights, and the scale and minimum of each value.
func decoded(d tensor.DType, row []byte) (q, scale, low []float64) {
	f, format := blockFormats[d], d.Format()
	for ; len(row) > 0; row = row[f.bytes:] {
		var b block
		b.decode(&format, row[:f.bytes])
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

// records returns rows of activations: ordinary ones, zeros, and largest values.
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

// interleave returns w in the layout of a tier's kernels, followed by memory that must not be read.
func interleave(t testing.TB, kernels *quantizedKernels, d tensor.DType, src []byte, rows, k int) *interleaved {
	f := blockFormats[d]
	w := &interleaved{format: f, lanes: kernels.lanes, words: kernels.words, rows: rows, blocks: k / f.values}
	w.data = guarded(t, w.bytes())
	w.fill(src, 0, w.groups())
	return w
}

// Interleaving keeps every bit, and pads with zeros.
func TestInterleave(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ways := []*quantizedKernels{{lanes: 1}, {lanes: 4}, {lanes: 8}, {lanes: 16}}
	for _, tier := range tiers() {
		ways = append(ways, tier.quantized)
	}
	for d, f := range blockFormats {
		for _, way := range ways {
			const rows, blocks = 37, 3
			src, lanes := filled(t, rng, "wild", d, rows, blocks*f.values), way.lanes
			w := interleave(t, way, d, src, rows, blocks*f.values)
			whole := make([]byte, len(src)/rows)
			for row := range rows {
				if w.row(whole, row); !slices.Equal(whole, src[row*len(whole):][:len(whole)]) {
					t.Fatalf("%v, %d lanes: row %d has other bits", d, lanes, row)
				}
			}
			s := w.section(0, w.groups())
			got, zero := make([]byte, f.bytes), make([]byte, f.bytes)
			for row := range w.groups() * lanes {
				for i := range blocks {
					want := zero
					if row < rows {
						want = src[(row*blocks+i)*f.bytes:][:f.bytes]
					}
					if s.block(got, f, lanes, row/lanes, i, row%lanes); !slices.Equal(got, want) {
						t.Fatalf("%v, %d lanes: block %d of row %d is % x, want % x", d, lanes, i, row, got, want)
					}
				}
			}
		}
	}
}

// Every tier's products agree with float64 on the same 8-bit activations, write nothing else, and
// have the same bits for any number of tokens and groups.
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
	const groups = 4
	lanes := kernels.lanes
	rows, tokens := groups*lanes-1, 17
	src := filled(t, rng, filling, d, rows, k)
	w, size := interleave(t, kernels, d, src, rows, k), len(src)/rows
	_, x := records(t, rng, tokens, k)
	what := fmt.Sprintf("%s, %v, k %d, %s", tier, d, k, filling)

	// multiply adds to begun the products of groups groups and tokens records, from the given ones
	// on.
	multiply := func(begun float32, group, groups, token, tokens int) []float32 {
		totals := canaries(groups*tokens*lanes + 16)
		for i := range totals[:groups*tokens*lanes] {
			totals[i] = begun
		}
		kernels.products[d](totals, w.section(group, groups), x[token*recordBytes(k):], recordBytes(k), tokens)
		if slices.Index(totals, canary) != groups*tokens*lanes {
			t.Fatalf("%s, %d groups, %d tokens: more than the totals was written", what, groups, tokens)
		}
		return totals[:groups*tokens*lanes]
	}
	const begun = 3
	all, added := multiply(0, 0, groups, 0, tokens), multiply(begun, 0, groups, 0, tokens)
	for row := range rows {
		for token := range tokens {
			want, size := product8(d, src[row*size:][:size], x[token*recordBytes(k):][:recordBytes(k)])
			at := (row/lanes*tokens+token)*lanes + row%lanes
			if got := float64(all[at]); !(math.Abs(got-want) <= 2e-6*size+1e-40) {
				t.Fatalf("%s: product of row %d and token %d is %v, want %v (of %v)", what, row, token, got, want, size)
			}
			if got := float64(added[at]); !(math.Abs(got-want-begun) <= 2e-6*(size+begun)) {
				t.Fatalf("%s: product of row %d and token %d added to %d is %v, want %v (of %v)", what, row, token, begun, got, want+begun, size)
			}
		}
	}
	for n := 2; n < groups; n++ {
		got := multiply(0, groups-n, n, 0, tokens)
		if want := all[(groups-n)*tokens*lanes:]; !slices.Equal(got, want) {
			t.Fatalf("%s: the last %d groups have other bits than among all:\n%v\n%v", what, n, got, want)
		}
	}
	for n := 1; n < tokens; n++ {
		token := tokens - n
		for g := range groups {
			got := multiply(0, g, 1, token, n)
			if want := all[(g*tokens+token)*lanes:][:n*lanes]; !slices.Equal(got, want) {
				t.Fatalf("%s: the last %d tokens and group %d have other bits than among all:\n%v\n%v", what, n, g, got, want)
			}
		}
	}
}

// product8 returns the product of a row of weights and a record in float64, and the sum of the
// sizes of its terms.
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

// On every tier, a format has kernels if and only if its row says that products read bytes.
func TestBlockFormats(t *testing.T) {
	for _, f := range tensor.Formats() {
		d := f.DType
		if got := blockFormats[d] != nil; got != f.InBytes {
			t.Errorf("%v: has a block format is %v, products read bytes is %v; run go generate in gen", d, got, f.InBytes)
		}
		for _, tier := range tiers() {
			if got := tier.quantized.products[d] != nil; got != f.InBytes {
				t.Errorf("%v on %s: has kernels is %v, products read bytes is %v; run go generate in gen", d, tier.name, got, f.InBytes)
			}
		}
	}
}

func BenchmarkQuantized(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	const k = 2048
	for _, tier := range tiers() {
		kernels := tier.quantized
		for _, d := range plantest.Dtypes {
			f := blockFormats[d]
			if f == nil {
				continue
			}
			src := plantest.Weight(rng, "w", d, 0.5, tileRows, k)
			w := interleave(b, kernels, d, src.Data, tileRows, k)
			const most = 48
			_, x := records(b, rng, most, k)
			totals := make([]float32, most*tileRows)
			for _, n := range []int{1, 2, 4, 8, most} {
				b.Run(fmt.Sprintf("%s/%v/%d", tier.name, d, n), func(b *testing.B) {
					b.SetBytes(int64(w.bytes()))
					for b.Loop() {
						kernels.products[d](totals, w.section(0, w.groups()), x, recordBytes(k), n)
					}
					b.ReportMetric(float64(n*tileRows*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			}
		}
	}
}
