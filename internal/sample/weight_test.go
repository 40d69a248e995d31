package sample

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestWeightIsTheExponential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 255, 256, 32000, 151936, 1 << 20, math.MaxInt32}).Draw(t, "vocab")
		best := rapid.Float32Range(-100, 100).Draw(t, "best")
		logit := best - rapid.Float32Range(0, 60).Draw(t, "below")
		temperature := rapid.Float32Range(0.05, 5).Draw(t, "temperature")
		s := newScale(best, temperature, vocab)
		got := float64(s.weight(logit))
		want := math.Ldexp(math.Exp((float64(logit)-float64(best))/float64(temperature)), s.shift)
		// Rounding of the argument changes the value by up to 60/0.05 * 2^-53 of it.
		if math.Abs(got-want) > 1+want*1e-12 {
			t.Errorf("weight = %v, want %v", got, want)
		}
	})
}

func TestWeightAtTheEnds(t *testing.T) {
	const tiny, huge = math.SmallestNonzeroFloat32, math.MaxFloat32
	for _, test := range []struct {
		name                     string
		best, logit, temperature float32
		vocab                    int
		want                     uint64
	}{
		{"the largest", 3, 3, 1, 151936, 1 << 45},
		{"of one token", 3, 3, 1, 1, 1 << 62},
		{"of the most tokens", 3, 3, 1, math.MaxInt32, 1 << 32},
		{"smallest temperature", 1, math.Nextafter32(1, 0), tiny, 100, 0},
		{"smallest temperature, widest", huge, -huge, tiny, 100, 0},
		{"largest temperature", 1, -1, huge, 100, 1 << 56},
		{"largest temperature, widest", huge, -huge, huge, 151936, uint64(math.Ldexp(math.Exp(-2), 45))},
		{"negative logits", -huge, -huge, 1, 100, 1 << 56},
		{"just above nothing", 0, -31.19162, 1, 151936, 1},
		{"just nothing", 0, -31.19163, 1, 151936, 0},
	} {
		if got := newScale(test.best, test.temperature, test.vocab).weight(test.logit); got != test.want {
			t.Errorf("%s: weight = %d, want %d", test.name, got, test.want)
		}
	}
}

func TestWeightsCannotOverflow(t *testing.T) {
	for _, vocab := range []uint64{1, 2, 3, 4, 127, 128, 151936, 1 << 30, math.MaxInt32} {
		most := uint64(1) << weightShift(int(vocab))
		if most > (1<<63-1)/vocab {
			t.Errorf("%d weights of %d exceed 63 bits", vocab, most)
		}
		if most <= (1<<63-1)/vocab/4 {
			t.Errorf("%d weights of %d waste more than a bit", vocab, most)
		}
	}
}

func TestCeilProductIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(
			rapid.Float32Range(math.SmallestNonzeroFloat32, 1),
			rapid.SampledFrom([]float32{1, 0.5, 0.25, 0.1, 0.95, math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-64, 0x1p-40, 0x1p-39}),
		).Draw(t, "f")
		n := rapid.Uint64Range(1, 1<<63-1).Draw(t, "n")
		product := new(big.Rat).Mul(new(big.Rat).SetFloat64(float64(f)), new(big.Rat).SetInt(new(big.Int).SetUint64(n)))
		want := new(big.Int).Add(product.Num(), product.Denom())
		want.Sub(want, big.NewInt(1)).Quo(want, product.Denom())
		if got := ceilProduct(f, n); got != want.Uint64() {
			t.Errorf("ceilProduct(%v, %d) = %d, want %v", f, n, got, want)
		}
	})
}
