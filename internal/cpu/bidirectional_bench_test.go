package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// BenchmarkEncoder measures 512 tokens in a layer of BERT's base model: its attention, and the
// whole layer.
func BenchmarkEncoder(b *testing.B) {
	const tokens, vocab, d, ffn, heads = 512, 64, 768, 3072, 12
	rng := rand.New(rand.NewPCG(1, 2))
	weight := func(t tensor.DType, shape ...int) *tensor.Tensor { return plantest.Weight(rng, "w", t, 0.03, shape...) }
	a := plan.AttentionAttr{Heads: heads, KVHeads: heads, HeadDim: d / heads, Scale: 0.125}
	table, ones := weight(tensor.F32, vocab, d), weight(tensor.F32, d)
	layer := func(t tensor.DType) func(b *plan.Builder, x plan.Value) plan.Value {
		return func(b *plan.Builder, x plan.Value) plan.Value {
			y := b.Bidirectional(b.Linear(x, weight(t, d, d), nil), b.Linear(x, weight(t, d, d), nil), b.Linear(x, weight(t, d, d), nil), a)
			x = b.LayerNorm(b.Add(x, b.Linear(y, weight(t, d, d), nil)), ones, nil, 1e-5)
			y = b.Linear(b.Activate(b.Linear(x, weight(t, ffn, d), nil), plan.GELU), weight(t, d, ffn), nil)
			return b.LayerNorm(b.Add(x, y), ones, nil, 1e-5)
		}
	}
	for _, c := range []struct {
		name  string
		layer func(b *plan.Builder, x plan.Value) plan.Value
	}{
		{"attention", func(b *plan.Builder, x plan.Value) plan.Value { return b.Bidirectional(x, x, x, a) }},
		{fmt.Sprint(tensor.F16), layer(tensor.F16)},
		{fmt.Sprint(tensor.Q8_0), layer(tensor.Q8_0)},
	} {
		b.Run(c.name, func(b *testing.B) {
			spare(b, 2)
			p, err := plan.Build(func(b *plan.Builder) {
				y := b.PickMean(c.layer(b, b.Embed(table)))
				b.Output(y, y)
			})
			if err != nil {
				b.Fatal(err)
			}
			exe, err := New(0).Compile(context.Background(), p, plantest.LimitsFor(p, tokens, 1, tokens, 32, plan.Limits{Cache: tensor.F16, Activations: tensor.Q8_0}), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = exe.Close() }()
			batch := &plan.Batch{Start: []int32{0, tokens}, Lengths: []int32{tokens}, Tables: []plan.PageTable{}, Rows: []plan.Row{{Token: 0, Want: plan.WantHidden}}}
			for i := range int32(tokens) {
				batch.Tokens, batch.Positions = append(batch.Tokens, i*7%vocab), append(batch.Positions, i)
			}
			for b.Loop() {
				s, err := exe.Submit(batch)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Wait(context.Background()); err != nil {
					b.Fatal(err)
				}
				s.Release()
			}
		})
	}
}
