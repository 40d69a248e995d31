package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// BenchmarkExperts measures a token with 8 of 64 experts, also as a multiple of the time of a dense
// layer with as many weights.
func BenchmarkExperts(b *testing.B) {
	const vocab, d, ffn, experts, used = 64, 2048, 1024, 64, 8
	rng := rand.New(rand.NewPCG(1, 2))
	weight := func(t tensor.DType, shape ...int) *tensor.Tensor { return plantest.Weight(rng, "w", t, 0.02, shape...) }
	table, router := weight(tensor.F32, vocab, d), weight(tensor.F32, experts, d)
	program := func(layer func(b *plan.Builder, x plan.Value) plan.Value) *plan.Program {
		p, err := plan.Build(func(b *plan.Builder) {
			y := b.Pick(layer(b, b.Embed(table)))
			b.Output(y, y)
		})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	list := func(rows, cols int) (all []*tensor.Tensor) {
		for range experts {
			all = append(all, weight(tensor.Q4_K, rows, cols))
		}
		return all
	}
	programs := map[string]*plan.Program{
		"experts": program(func(b *plan.Builder, x plan.Value) plan.Value {
			return b.Experts(x, b.Linear(x, router, nil), nil, plan.ExpertsAttr{
				Route: plan.RouteAttr{Used: used, Normalize: true, Scale: 1}, Gate: list(ffn, d), Up: list(ffn, d), Down: list(d, ffn),
			})
		}),
		"dense": program(func(b *plan.Builder, x plan.Value) plan.Value {
			up := b.GLU(b.Linear(x, weight(tensor.Q4_K, experts*ffn, d), nil), b.Linear(x, weight(tensor.Q4_K, experts*ffn, d), nil), plan.GLUAttr{Act: plan.SiLU})
			return b.Linear(up, weight(tensor.Q4_K, d, experts*ffn), nil)
		}),
	}
	for _, tokens := range []int{1, 8, 64} {
		times := map[string]float64{}
		for _, name := range []string{"dense", "experts"} {
			b.Run(fmt.Sprintf("T=%d/%s", tokens, name), func(b *testing.B) {
				spare(b, 2)
				p := programs[name]
				exe, err := New(0).Compile(context.Background(), p, plantest.LimitsFor(p, tokens, 1, tokens, 32, plan.Limits{Cache: tensor.F16, Activations: tensor.Q8_0}), nil)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = exe.Close() }()
				batch := &plan.Batch{Start: []int32{0, int32(tokens)}, Lengths: []int32{int32(tokens)}, Tables: []plan.PageTable{}}
				for i := range tokens {
					batch.Tokens, batch.Positions = append(batch.Tokens, 0), append(batch.Positions, int32(i))
				}
				begun, steps := time.Now(), 0
				for b.Loop() {
					for i := range batch.Tokens {
						batch.Tokens[i] = int32((steps*7 + i*5) % vocab)
					}
					s, err := exe.Submit(batch)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := s.Wait(context.Background()); err != nil {
						b.Fatal(err)
					}
					s.Release()
					steps++
				}
				times[name] = float64(time.Since(begun)) / float64(steps)
				if name == "experts" && times["dense"] > 0 {
					b.ReportMetric(times["dense"]/times[name], "dense/experts")
				}
			})
		}
	}
}
