package sample_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/sample"
)

// A bias of -Inf has the same effect as a mask: the same tokens and the same errors, whatever the
// other parameters.
func TestBansAreMasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 4))
	maybe := func(v float32) float32 { return v * float32(rng.IntN(2)) }
	var s sample.Sampler
	empty, none := 0, 0
	for n := range 20_000 {
		vocab := 1 + rng.IntN(300)
		if n%2 == 0 {
			vocab = 1 + rng.IntN(6)
		}
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = float32(rng.IntN(40))/4 - 3
			if rng.IntN(9) == 0 {
				logits[i] = negInf
			}
		}
		if rng.IntN(20) == 0 {
			logits[rng.IntN(vocab)] = []float32{inf, nan}[rng.IntN(2)]
		}
		p := sample.Params{
			Repetition: maybe(1.3), Frequency: maybe(0.5), Presence: maybe(-0.4), Temperature: maybe(1.5), TopK: rng.IntN(2) * rng.IntN(20),
			Typical: maybe(0.6), TopP: maybe(0.7), MinP: maybe(0.1), Seed: rng.Uint64(),
		}
		var mask []uint32
		if rng.IntN(2) == 0 {
			for range (vocab + 31) / 32 {
				mask = append(mask, rng.Uint32()|rng.Uint32())
			}
		}
		less := slices.Clone(mask)
		if mask == nil {
			less = slices.Repeat([]uint32{^uint32(0)}, (vocab+31)/32)
		}
		var biased, left []sample.Adjustment
		often := 1 + rng.IntN(5)
		for i := range vocab {
			a := sample.Adjustment{Token: int32(i), Bias: maybe(float32(rng.IntN(7)) - 3), Count: rng.Int32N(3), Prompt: rng.IntN(2) == 0}
			if rng.IntN(often) > 0 {
				if rng.IntN(2) == 0 {
					biased, left = append(biased, a), append(left, a)
				}
				continue
			}
			less[i/32] &^= 1 << (i % 32)
			if rng.IntN(2) == 0 { // a forbidden token's other fields do not matter
				left = append(left, a)
			}
			a.Bias = negInf
			biased = append(biased, a)
		}
		last := rng.Int32N(int32(vocab)+1) - 1
		want, wantErr := s.Token(logits, &p, mask, biased, last, n)
		got, err := s.Token(logits, &p, less, left, last, n)
		if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%v by %+v, after %d: %d (%v) by a mask, %d (%v) by biases", logits, p, last, got, err, want, wantErr)
		}
		if errors.Is(err, sample.ErrEmptyMask) {
			empty++
		} else if err != nil {
			none++
		}
	}
	if empty == 0 || none == 0 {
		t.Errorf("%d masks of nothing, %d other errors", empty, none)
	}
}
