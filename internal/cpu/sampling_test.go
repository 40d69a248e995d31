package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/sample"
)

// Every tier's maxima lead to the same tokens and errors as plain Go's.
func TestTokensAreTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 1))
	inf := float32(math.Inf(1))
	kinds := map[string]func(i int) float32{
		"ordinary":  func(int) float32 { return float32(rng.NormFloat64() * 4) },
		"ties":      func(int) float32 { return float32(rng.IntN(3)) * 0.5 },
		"zeros":     func(int) float32 { return float32(math.Copysign(0, float64(rng.IntN(2))-0.5)) },
		"ascending": func(i int) float32 { return float32(i) / 100 },
		"padded": func(i int) float32 {
			if i%9 == 0 {
				return -inf
			}
			return float32(rng.NormFloat64())
		},
		"no number": func(i int) float32 {
			return [...]float32{1, float32(math.NaN()), inf, -inf, 2}[max(0, 4-rng.IntN(300))]
		},
		"-Inf":    func(int) float32 { return -inf },
		"extreme": func(int) float32 { return [...]float32{math.MaxFloat32, -math.MaxFloat32, 1e-45, -1e-45}[rng.IntN(4)] },
	}
	params := []sample.Params{{}, {Temperature: 0.8}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopK: 40}, {Temperature: 2, TopK: 7, TopP: 0.9}, {Temperature: 1, MinP: 0.1}}
	for _, tier := range tiers() {
		fast, plain := sample.Sampler{Maxima: tier.vector.maxima}, sample.Sampler{}
		for what, kind := range kinds {
			for _, vocab := range []int{1, 255, 256, 257, 1000, 20_000} {
				logits := make([]float32, vocab)
				for i := range logits {
					logits[i] = kind(i)
				}
				sparse, none := make([]uint32, (vocab+31)/32), make([]uint32, (vocab+31)/32)
				for i := range sparse {
					sparse[i] = rng.Uint32() & rng.Uint32() & rng.Uint32()
				}
				for i := range params {
					params[i].Seed = rng.Uint64()
					for m, mask := range [][]uint32{nil, sparse, none} {
						got, err := fast.Token(logits, &params[i], mask, nil, -1, 3)
						want, wantErr := plain.Token(logits, &params[i], mask, nil, -1, 3)
						if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
							t.Fatalf("%s: %s, %d tokens, mask %d, %+v: %d and %v, want %d and %v", tier.name, what, vocab, m, params[i], got, err, want, wantErr)
						}
					}
				}
			}
		}
	}
}

func BenchmarkToken(b *testing.B) {
	logits := random(rand.New(rand.NewPCG(17, 2)), 151_936)
	for _, tier := range tiers() {
		for _, p := range []sample.Params{{}, {Temperature: 0.8, TopK: 40}, {Temperature: 0.8, TopK: 1000}} {
			b.Run(fmt.Sprintf("%s/top-k %d", tier.name, p.TopK), func(b *testing.B) {
				b.SetBytes(4 * int64(len(logits)))
				s := sample.Sampler{Maxima: tier.vector.maxima}
				for pos := 0; b.Loop(); pos++ {
					if _, err := s.Token(logits, &p, nil, nil, -1, pos); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
