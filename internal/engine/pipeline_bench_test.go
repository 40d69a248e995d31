package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Two processors of one thread each, by layer, beside one. With two cores, prompts and answers of
// BenchmarkPipeline compares two processors of one thread each, by layer, with one processor.
func BenchmarkPipeline(b *testing.B) {
	p := benched(b)
	for _, c := range []struct {
		name             string
		requests, prompt int
		tokens           int
	}{{"prompts", 4, 1024, 1}, {"answers", 16, 16, 64}, {"one answer", 1, 16, 64}} {
		for name, backend := range map[string]plan.Backend{"one": cpu.New(1), "by layer": mesh.New(cpu.New(1), 2, mesh.ByLayer)} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				e, err := engine.New(b.Context(), p, backend, engine.Config{Context: 2048, Parallel: 16, Chunk: 512, Cache: tensor.F16, Activations: cpu.Rounds}, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = e.Close() }()
				salt := 0
				for b.Loop() {
					var all sync.WaitGroup
					for i := range c.requests {
						salt++
						r := &engine.Request{Tokens: c.tokens, Salt: fmt.Sprint(salt)}
						for j := range c.prompt {
							r.Prompt = append(r.Prompt, int32((i*31+j*7)%p.Vocab))
						}
						all.Go(func() {
							if _, err := e.Run(context.Background(), r, func(*engine.Result) (bool, error) { return true, nil }); err != nil {
								b.Error(err)
							}
						})
					}
					all.Wait()
				}
				n := c.tokens
				if n == 1 {
					n = c.prompt
				}
				b.ReportMetric(float64(n*c.requests*b.N)/b.Elapsed().Seconds(), "tok/s")
			})
		}
	}
}

// benched returns a decoder of eight layers, 26 M weights in Q8_0.
func benched(b *testing.B) *plan.Program {
	const layers, hidden, ffn, heads, kv, dim, vocab = 8, 512, 1536, 8, 2, 64, 2048
	rng := rand.New(rand.NewPCG(1, 2))
	matrix := func(rows, cols int) *tensor.Tensor {
		return plantest.Weight(rng, "w", tensor.Q8_0, 1/math.Sqrt(float64(cols)), rows, cols)
	}
	norm := plantest.Weight(rng, "norm", tensor.F32, 1, hidden)
	rope := plan.RopeAttr{HeadDim: dim, Dims: dim, Scale: 1}
	for i := range dim / 2 {
		rope.Freqs = append(rope.Freqs, math.Pow(1e4, -2*float64(i)/dim))
	}
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(matrix(vocab, hidden))
		for i := range layers {
			b.Layer(i)
			h := b.RMSNorm(x, norm, 1e-5)
			s := b.State(plan.State{Name: fmt.Sprint(i), Kind: plan.PerToken, KVHeads: kv, HeadDim: dim, ValueDim: dim})
			y := b.Attention(b.Rope(b.Linear(h, matrix(heads*dim, hidden), nil), rope), b.Rope(b.Linear(h, matrix(kv*dim, hidden), nil), rope), b.Linear(h, matrix(kv*dim, hidden), nil), nil, s,
				plan.AttentionAttr{Heads: heads, KVHeads: kv, HeadDim: dim, Scale: 0.125})
			x = b.Add(x, b.Linear(y, matrix(hidden, heads*dim), nil))
			h = b.RMSNorm(x, norm, 1e-5)
			x = b.Add(x, b.Linear(b.GLU(b.Linear(h, matrix(ffn, hidden), nil), b.Linear(h, matrix(ffn, hidden), nil), plan.GLUAttr{Act: plan.SiLU}), matrix(hidden, ffn), nil))
		}
		b.Layer(plan.NoLayer)
		x = b.RMSNorm(b.Pick(x), norm, 1e-5)
		b.Output(x, b.Linear(x, matrix(vocab, hidden), nil))
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}
