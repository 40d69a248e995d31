package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// BenchmarkSelect measures the indexer of DeepSeek-V3.2 for a token at the end of a context.
func BenchmarkSelect(b *testing.B) {
	a := plan.SelectAttr{Heads: 64, HeadDim: 128, Top: 2048}
	rng := rand.New(rand.NewPCG(1, 2))
	p, err := plan.Build(func(b *plan.Builder) {
		table := func(name string, cols int) plan.Value {
			return b.Embed(plantest.Weight(rng, name, tensor.F32, 1, 64, cols))
		}
		state := b.State(plan.State{Name: "index", Kind: plan.PerToken, KVHeads: 1, HeadDim: a.HeadDim})
		h := b.Pick(b.Select(table("q", a.Heads*a.HeadDim), table("k", a.HeadDim), table("w", a.Heads), state, a))
		b.Output(h, h)
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, context := range []int{8 << 10, 64 << 10} {
		for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
			b.Run(fmt.Sprintf("%d of %v", context, cache), func(b *testing.B) {
				const chunk, page = 256, 32
				exe, err := cpu.New(0).Compile(b.Context(), p, plantest.LimitsFor(p, chunk, 1, context, page, plan.Limits{Cache: cache}), nil)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = exe.Close() }()
				batch := &plan.Batch{Tables: make([]plan.PageTable, 1), Spans: true}
				batch.Tables[0].Reset()
				pages := make([]int32, context/page)
				for i := range pages {
					pages[i] = int32(i)
				}
				batch.Tables[0].Add(0, pages...)
				run := func(from, tokens int) (spent time.Duration) {
					batch.Tokens, batch.Positions = batch.Tokens[:0], batch.Positions[:0]
					for i := range tokens {
						batch.Tokens, batch.Positions = append(batch.Tokens, rng.Int32N(64)), append(batch.Positions, int32(from+i))
					}
					batch.Start, batch.Lengths = []int32{0, int32(tokens)}, []int32{int32(context)}
					step, err := exe.Submit(batch)
					if err != nil {
						b.Fatal(err)
					}
					res, err := step.Wait(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					for _, s := range res.Spans {
						if strings.Contains(s.Kernel, "select") {
							spent += s.Time
						}
					}
					step.Release()
					return spent
				}
				run(0, 1) // keys of zeros beyond take as long
				var spent time.Duration
				for b.Loop() {
					spent += run(context-1, 1)
				}
				b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "us/step")
			})
		}
	}
}
