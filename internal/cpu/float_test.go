package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Every tier writes the same bits as package tensor, and no values beyond, for ordinary weights and
// for random bits. It reads nothing past the blocks.
func TestDequantize(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	room := guarded(t, 1<<14)
	for _, tier := range tiers() {
		for _, d := range plantest.Dtypes {
			for _, blocks := range []int{1, 2, 3, 7, 8, 9, 31} {
				for _, wild := range []bool{false, true} {
					w := plantest.Weight(rng, "w", d, 1, 1, blocks*d.BlockLen())
					if wild {
						for i := range w.Data {
							w.Data[i] = byte(rng.Uint32())
						}
					}
					want := make([]float32, w.Cols())
					if err := tensor.Dequantize(d, want, w.Data); err != nil {
						t.Fatal(err)
					}
					const canary = 12345
					got := make([]float32, w.Cols()+16)
					for i := range got {
						got[i] = canary
					}
					src := room[len(room)-len(w.Data):]
					copy(src, w.Data)
					tier.dequantizer(d)(got[:w.Cols()], src)
					for i, v := range got {
						if i >= len(want) {
							if v != canary {
								t.Fatalf("%s, %v: value %d of %d was written", tier.name, d, i, len(want))
							}
							continue
						}
						if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
							t.Fatalf("%s, %v, wild %v: value %d is %v, want %v", tier.name, d, wild, i, v, want[i])
						}
					}
				}
			}
		}
	}
}

func BenchmarkDequantize(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, tier := range tiers() {
		for _, d := range plantest.Dtypes {
			w := plantest.Weight(rng, "w", d, 1, 1, 4096)
			dst, row := make([]float32, 4096), tier.dequantizer(d)
			b.Run(fmt.Sprintf("%s/%v", tier.name, d), func(b *testing.B) {
				b.SetBytes(int64(len(w.Data)))
				for b.Loop() {
					row(dst, w.Data)
				}
			})
		}
	}
}

// Every tier's products agree with float64 for every length and number of tokens. They write
// nothing else, read nothing past the rows, and do not depend on their neighbors.
func TestDots(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	weights, activations := guarded(t, 1<<16), guarded(t, 1<<17)
	for _, tier := range tiers() {
		for _, k := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 1024} {
			stride := k + k%3
			w := randomAt(rng, weights, (dotRows-1)*stride+k)
			one := make([]float32, dotRows)
			for tokens := 1; tokens <= dotTokens; tokens++ {
				x := randomAt(rng, activations, (tokens-1)*stride+k)
				const canary = 12345
				dst := make([]float32, dotTokens*dotRows+8)
				for i := range dst {
					dst[i] = canary
				}
				tier.dots(dst, w, x, k, stride, tokens)
				for i, v := range dst {
					row, token := i%dotRows, i/dotRows
					if token >= tokens {
						if v != canary {
							t.Fatalf("%s, k %d, %d tokens: product %d was written", tier.name, k, tokens, i)
						}
						continue
					}
					var want, size float64
					for j := range k {
						p := float64(w[row*stride+j]) * float64(x[token*stride+j])
						want, size = want+p, size+math.Abs(p)
					}
					if math.Abs(float64(v)-want) > 1e-6*size {
						t.Fatalf("%s, k %d, %d tokens: product %d is %v, want %v", tier.name, k, tokens, i, v, want)
					}
					if tier.dots(one, w, x[token*stride:], k, stride, 1); math.Float32bits(one[row]) != math.Float32bits(v) {
						t.Fatalf("%s, k %d: product %d has other bits among %d tokens", tier.name, k, i, tokens)
					}
				}
			}
		}
	}
}

func BenchmarkDots(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 10))
	const k = 2048
	w, x, dst := random(rng, dotRows*k), random(rng, dotTokens*k), make([]float32, dotRows*dotTokens)
	for _, tier := range tiers() {
		for _, tokens := range []int{1, dotTokens} {
			b.Run(fmt.Sprintf("%s/%d tokens", tier.name, tokens), func(b *testing.B) {
				b.SetBytes(4 * dotRows * k)
				for b.Loop() {
					tier.dots(dst, w, x, k, k, tokens)
				}
			})
		}
	}
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	randomise(rng, v)
	return v
}

// randomAt fills the last n values of room.
func randomAt(rng *rand.Rand, room []byte, n int) []float32 {
	v := unsafe.Slice((*float32)(unsafe.Pointer(&room[len(room)-4*n])), n)
	randomise(rng, v)
	return v
}

func randomise(rng *rand.Rand, v []float32) {
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
}
