package random_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/tensor"
)

// formats returns all formats of weights.
func formats() []tensor.DType {
	var all []tensor.DType
	for d := tensor.F32; d.Weight(); d++ {
		all = append(all, d)
	}
	return all
}

func newFiller(t testing.TB, seed uint64, d tensor.DType, mean, std float64) *random.Filler {
	t.Helper()
	f, err := random.NewFiller(seed, d, mean, std)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// values returns n values of the tensor.
func values(t testing.TB, seed uint64, d tensor.DType, mean, std float64, n int) []float32 {
	t.Helper()
	size, err := d.Size(n)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	newFiller(t, seed, d, mean, std).Fill(data, 0)
	v := make([]float32, n)
	if err := tensor.Dequantize(d, v, data); err != nil {
		t.Fatal(err)
	}
	return v
}

// moments returns the mean and the standard deviation of v.
func moments(v []float32) (mean, std float64) {
	for _, x := range v {
		mean += float64(x) / float64(len(v))
	}
	for _, x := range v {
		std += (float64(x) - mean) * (float64(x) - mean) / float64(len(v))
	}
	return mean, math.Sqrt(std)
}

// Every format has the standard deviation asked for, about the mean asked for.
func TestMoments(t *testing.T) {
	for _, d := range formats() {
		for _, std := range []float64{0.5, 0.0221, 0.0019, 3} {
			if d == tensor.F8_E4M3 && std < 0x1p-7 {
				continue // too few distinct values
			}
			v := values(t, 7, d, 0, std, 1<<19)
			mean, got := moments(v)
			if math.Abs(got/std-1) > 0.02 || math.Abs(mean) > 0.02*std {
				t.Errorf("%v: mean %v, standard deviation %v, want 0 and %v", d, mean, got, std)
			}
			if largest := float64(slices.Max(v)); largest > 12*std || largest < 1.7*std {
				t.Errorf("%v: largest value %v with a standard deviation of %v", d, largest, std)
			}
		}
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
		if mean, std := moments(values(t, 7, d, 1, 0.1, 1<<18)); math.Abs(mean-1) > 0.002 || math.Abs(std-0.1) > 0.002 {
			t.Errorf("%v: mean %v, standard deviation %v, want 1 and 0.1", d, mean, std)
		}
	}
}

// A column of a matrix has the mean 0 at any place in a block. Otherwise sums over many columns
// would all lie to one side.
func TestEveryPlaceIsCentred(t *testing.T) {
	const period, blocks = 256, 1 << 11
	for _, d := range formats() {
		v := values(t, 3, d, 0, 1, period*blocks)
		for place := range period {
			sum := 0.0
			for i := place; i < len(v); i += period {
				sum += float64(v[i])
			}
			if mean := sum / blocks; math.Abs(mean) > 6/math.Sqrt(blocks) {
				t.Errorf("%v: place %d has the mean %v over %d blocks of deviation 1", d, place, mean, blocks)
			}
		}
	}
}

// The values of a group do not lie on one side of zero: means of 16 independent values have 1/16 of
// their variance. A few blocks with values on one side exist.
func TestGroupsAreCentred(t *testing.T) {
	for _, d := range formats() {
		v := values(t, 3, d, 0, 1, 1<<18)
		share, aside := 0.0, 0
		for i := 0; i < len(v); i += 16 {
			mean, std := moments(v[i : i+16])
			share += mean * mean / float64(len(v)/16)
			if std > 0 && math.Abs(mean) > 2*std {
				aside++
			}
		}
		if share > 0.2 {
			t.Errorf("%v: %.3f of the variance is that of the means of groups of 16", d, share)
		}
		two := len(random.Scales(d)) == 2 // formats with a scale and a minimum
		if fraction := float64(aside) / float64(len(v)/16); fraction > 0.1 || two != (fraction > 0.0005) {
			t.Errorf("%v: %.4f of the groups lie to one side", d, fraction)
		}
	}
}

// Parts filled separately equal those of the whole.
func TestParts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.SampledFrom(formats()).Draw(r, "format")
		blocks := rapid.IntRange(0, 100).Draw(r, "blocks")
		f := newFiller(t, rapid.Uint64().Draw(r, "seed"), d, 0, 0.1)
		whole := make([]byte, blocks*d.BlockBytes())
		f.Fill(whole, 0)
		parts := make([]byte, 0, len(whole))
		for at := 0; at < blocks; {
			n := min(blocks-at, random.Step*rapid.IntRange(1, 5).Draw(r, "steps"))
			part := make([]byte, n*d.BlockBytes())
			f.Fill(part, at)
			parts = append(parts, part...)
			at += n
		}
		if !bytes.Equal(whole, parts) {
			r.Fatalf("%v: %d blocks in parts differ from the whole", d, blocks)
		}
	})
}

// Seeds and names give different data.
func TestSeeds(t *testing.T) {
	seen := map[string]string{}
	for seed := range uint64(20) {
		for _, name := range []string{"a", "b", "blk.0.attn_q.weight", "blk.1.attn_q.weight"} {
			data := make([]byte, 64)
			newFiller(t, random.Seed(seed, name), tensor.F32, 0, 1).Fill(data, 0)
			what := fmt.Sprintf("%s of seed %d", name, seed)
			if other, ok := seen[string(data)]; ok {
				t.Errorf("%s is that of %s", what, other)
			}
			seen[string(data)] = what
		}
	}
}

// The bytes are the same on every machine and in every version, so that figures can be compared.
func TestBytes(t *testing.T) {
	h := sha256.New()
	for _, d := range formats() {
		data := make([]byte, 999*d.BlockBytes())
		newFiller(t, 1, d, 0, 0.03).Fill(data, 0)
		h.Write(data)
	}
	data := make([]byte, 4*999)
	newFiller(t, 1, tensor.F32, 1, 0.1).Fill(data, 0)
	h.Write(data)
	const want = "138ee7c34251331d8a8317ccb5867b7bb032d13c0b726d177c00641bafdcaefa"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("the bytes have changed: checksum %s, want %s", got, want)
	}
}

func TestRefuses(t *testing.T) {
	for _, test := range []struct {
		d         tensor.DType
		mean, std float64
	}{
		{tensor.I8, 0, 1}, {tensor.DType(200), 0, 1},
		{tensor.F32, 0, -1}, {tensor.F32, 0, math.NaN()}, {tensor.F32, 0, math.Inf(1)}, {tensor.F32, math.Inf(-1), 1}, {tensor.F32, math.NaN(), 1},
		{tensor.F16, 0, 1e5}, {tensor.F16, 1e5, 1},
		{tensor.F8_E4M3, 0, 120}, {tensor.F8_E4M3, 0, 0.001}, {tensor.F8_E5M2, 0, 2e4}, {tensor.IQ1_M, 0, 1e7}, {tensor.TQ2_0, 1, 1},
		{tensor.Q4_0, 1, 1}, {tensor.Q4_0, 0, 1e7}, {tensor.Q8_0, 0, 1e-7}, {tensor.Q6_K, 0, 1e-4}, {tensor.Q4_K, 0, 1e9},
		{tensor.F8_E4M3_32, 0, 1e38}, {tensor.F8_E4M3_32, 0, 1e-35}, {tensor.F8_E4M3_32, 1, 1}, {tensor.MXFP4, 0, 0}, {tensor.MXFP4, 0, 1e-38}, {tensor.MXFP4, 0, 3e38},
	} {
		if _, err := random.NewFiller(1, test.d, test.mean, test.std); err == nil {
			t.Errorf("%v with mean %v and deviation %v: no error", test.d, test.mean, test.std)
		} else if wrong := !test.d.Weight(); wrong != errors.Is(err, tensor.ErrDType) {
			t.Errorf("%v: %v", test.d, err)
		}
	}
	for name, fill := range map[string]func(f *random.Filler){
		"a part of a block": func(f *random.Filler) { f.Fill(make([]byte, 17), 0) },
		"from block 4 on":   func(f *random.Filler) { f.Fill(make([]byte, 18), 4) },
		"from block -8 on":  func(f *random.Filler) { f.Fill(make([]byte, 18), -8) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			fill(newFiller(t, 1, tensor.Q4_0, 0, 1))
		}()
	}
}

func BenchmarkFill(b *testing.B) {
	for _, d := range formats() {
		b.Run(d.String(), func(b *testing.B) {
			f := newFiller(b, 1, d, 0, 0.02)
			data := make([]byte, 1<<13*d.BlockBytes())
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f.Fill(data, 0)
			}
		})
	}
}
