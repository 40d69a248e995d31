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

// Products with weights in their stored format have the same bits as with dequantized rows, for
// every number of rows, tokens and elements. They read nothing past weights and activations, and
// write no other products.
func TestStoredDots(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	room := guarded(t, 1<<16)
	values := guarded(t, 1<<16)
	for _, tier := range tiers() {
		for d, dots := range tier.stored {
			lengths := []int{100, 255, 256, 257, 1000}
			for k := 1; k <= 70; k++ {
				lengths = append(lengths, k)
			}
			for _, k := range lengths {
				const most = 3
				stride := k * d.BlockBytes()
				for _, gap := range []int{0, 1} {
					stride += gap * 3 * d.BlockBytes()
					for rows := 1; rows <= dotRows; rows++ {
						stored := plantest.Weight(rng, "w", d, 1, dotRows, k)
						size := (rows-1)*stride + k*d.BlockBytes()
						w := room[len(room)-size:]
						tile := make([]float32, dotRows*k)
						for r := range rows {
							copy(w[r*stride:], stored.Row(r))
							tier.dequantizer(d)(tile[r*k:(r+1)*k], stored.Row(r))
						}
						n := 4 * most * k
						x := unsafe.Slice((*float32)(unsafe.Pointer(&values[len(values)-n])), most*k)
						for i := range x {
							x[i] = float32(rng.NormFloat64())
						}
						for tokens := 1; tokens <= most; tokens++ {
							want, got := make([]float32, most*dotRows), make([]float32, most*dotRows)
							for i := range got {
								got[i] = 12345
							}
							tier.dots(want, tile, x[(most-tokens)*k:], k, k, tokens)
							dots(got, w, stride, x[(most-tokens)*k:], k, k, tokens)
							for i, v := range got {
								if i >= tokens*dotRows || i%dotRows >= rows {
									if v != 12345 {
										t.Fatalf("%s, %v, k %d, %d tokens: product %d was written", tier.name, d, k, tokens, i)
									}
								} else if math.Float32bits(v) != math.Float32bits(want[i]) {
									t.Fatalf("%s, %v, k %d, %d rows, %d tokens: product %d is %v, want %v", tier.name, d, k, rows, tokens, i, v, want[i])
								}
							}
						}
					}
				}
			}
		}
	}
}

// The weights exceed the caches.
func BenchmarkStoredDots(b *testing.B) {
	rng := rand.New(rand.NewPCG(13, 2))
	const k, rows = 2048, 1 << 15
	x, dst, tile := random(rng, 4*k), make([]float32, 4*dotRows), make([]float32, dotRows*k)
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32} {
		stride := k * d.BlockBytes()
		w := make([]byte, rows*stride)
		for i := range w {
			w[i] = byte(i % 61)
		}
		for _, tier := range tiers() {
			if tier.stored == nil {
				continue
			}
			for _, tokens := range []int{1, 2, 4} {
				b.Run(fmt.Sprintf("%v/%s/%d tokens", d, tier.name, tokens), func(b *testing.B) {
					b.SetBytes(int64(dotRows * stride))
					for i := 0; b.Loop(); i = (i + dotRows) % rows {
						tier.stored[d](dst, w[i*stride:(i+dotRows)*stride], stride, x, k, k, tokens)
					}
				})
				b.Run(fmt.Sprintf("%v/%s/%d tokens, dequantized", d, tier.name, tokens), func(b *testing.B) {
					b.SetBytes(int64(dotRows * stride))
					dequantize := tier.dequantizer(d)
					for i := 0; b.Loop(); i = (i + dotRows) % rows {
						for r := range dotRows {
							dequantize(tile[r*k:(r+1)*k], w[(i+r)*stride:(i+r+1)*stride])
						}
						tier.dots(dst, tile, x, k, k, tokens)
					}
				})
			}
		}
	}
}
