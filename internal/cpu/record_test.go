package cpu

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// rowsToQuantize returns rows of n values: ordinary ones, and every kind of exception.
func rowsToQuantize(rng *rand.Rand, n int) map[string][]float32 {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	with := func(scale float32, values ...float32) []float32 {
		x := random(rng, n)
		for i := range x {
			x[i] *= scale
			if rng.IntN(40) == 0 && len(values) > 0 {
				x[i] = values[rng.IntN(len(values))]
			}
		}
		return x
	}
	bits := make([]float32, n)
	for i := range bits {
		bits[i] = math.Float32frombits(rng.Uint32())
	}
	halves := make([]float32, n) // products halfway between two integers
	for i := range halves {
		halves[i] = float32(rng.IntN(255)-127) / 2
		if i%recordBlock == 7 {
			halves[i] = 127
		}
	}
	same := make([]float32, n)
	for i := range same {
		same[i] = -3
	}
	return map[string][]float32{
		"ordinary":        with(1),
		"large":           with(1e38, math.MaxFloat32, -math.MaxFloat32),
		"around 2^-100":   with(1.0/(1<<50)/(1<<50), 0),
		"subnormal":       with(1e-40, math.SmallestNonzeroFloat32),
		"zeros":           make([]float32, n),
		"infinite":        with(1, inf, -inf),
		"NaN":             with(1, nan, inf, math.Float32frombits(0xff800001), math.Float32frombits(0x7f80beef)),
		"any bits":        bits,
		"halves":          halves,
		"all the same":    same,
		"one outlier":     with(1e-3, 1e4),
		"negative zeroes": with(0, float32(math.Copysign(0, -1))),
	}
}

// Every tier writes the same bytes as the generic one, and no others, for any range of a row.
func TestQuantizeIsTheSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tier := range tiers() {
		for blocks := 1; blocks <= 13; blocks++ {
			n := blocks * recordBlock
			room := guarded(t, 4*n)
			x := unsafe.Slice((*float32)(unsafe.Pointer(&room[0])), n)
			for what, values := range rowsToQuantize(rng, n) {
				copy(x, values)
				want := make([]byte, recordBytes(n))
				quantizeGeneric(want, x, 0, n)
				for lo := 0; lo < n; lo += recordBlock {
					for hi := lo; hi <= n; hi += recordBlock {
						got := bytes.Repeat([]byte{0xa5}, recordBytes(n)+64)
						tier.vector.quantize(got[:recordBytes(n):recordBytes(n)], x, lo, hi)
						for i, c := range got {
							w := byte(0xa5)
							if i >= recordBytes(lo) && i < recordBytes(hi) {
								w = want[i]
							}
							if c != w {
								t.Fatalf("%s, %s, values %d to %d of %d: byte %d of block %d is %#x, want %#x", tier.name, what, lo, hi, n, i%recordBlockBytes, i/recordBlockBytes, c, w)
							}
						}
					}
				}
			}
		}
	}
}

// A record has the contents that its comment describes.
func TestRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 64 * recordBlock
	le := binary.LittleEndian
	float := func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	for what, x := range rowsToQuantize(rng, n) {
		record := make([]byte, recordBytes(n))
		quantizeGeneric(record, x, 0, n)
		for b := 0; b < n; b += recordBlock {
			values, block := x[b:b+recordBlock], record[recordBytes(b):][:recordBlockBytes]
			top, finite := 0.0, true
			for _, v := range values {
				finite = finite && v-v == 0
				top = max(top, math.Abs(float64(v)))
			}
			d := float(block[32:])
			if finite != (d-d == 0) {
				t.Fatalf("%s: scale %v of %v", what, d, values)
			}
			if !finite {
				continue
			}
			if top < math.Ldexp(1, -100) {
				if !bytes.Equal(block, make([]byte, recordBlockBytes)) {
					t.Fatalf("%s: %v is not zeros", what, values)
				}
				continue
			}
			if math.Abs(d*127-top) > 1e-6*top {
				t.Fatalf("%s: scale %v for a maximum of %v", what, d, top)
			}
			var sums [2]int32
			for i, v := range values {
				q := int8(block[i])
				if q == -128 || math.Abs(d*float64(q)-float64(v)) > 0.5001*d {
					t.Fatalf("%s: %v is %d times %v", what, v, q, d)
				}
				sums[i/16] += int32(q)
			}
			for at, s := range map[int]int32{36: sums[0] + sums[1], 48: sums[0], 52: sums[1]} {
				if got := int32(le.Uint32(block[at:])); got != -128*s {
					t.Fatalf("%s: offset %d: %d for a sum of %d", what, at, got, s)
				}
			}
			for at, s := range map[int]int32{40: sums[0] + sums[1], 56: sums[0], 60: sums[1]} {
				if got := float(block[at:]); got != float64(float32(d)*float32(s)) {
					t.Fatalf("%s: offset %d: %v for a sum of %d", what, at, got, s)
				}
			}
		}
	}
}

func BenchmarkQuantize(b *testing.B) {
	const n = 2048
	x, record := random(rand.New(rand.NewPCG(1, 2)), n), make([]byte, recordBytes(n))
	for _, tier := range tiers() {
		b.Run(tier.name, func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				tier.vector.quantize(record, x, 0, n)
			}
		})
	}
}
