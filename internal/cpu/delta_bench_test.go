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

// BenchmarkDelta measures delta nets in the shape of Qwen3.5-35B-A3B: single tokens at the
// beginning, in the middle and at the end of a chunk, and a prompt. It reports the rate at which
// the least is read and written that has to be.
func BenchmarkDelta(b *testing.B) {
	const layers = 20
	for _, byChannel := range []bool{false, true} {
		a := plan.DeltaAttr{KeyHeads: 16, Heads: 32, KeyDim: 128, ValueDim: 128, Beta: 1, ByChannel: byChannel}
		if byChannel {
			a.KeyHeads = 32
		}
		rng := rand.New(rand.NewPCG(1, 2))
		rates := make([]byte, 0, 4*a.Heads)
		for range a.Heads {
			rates = append(rates, 0, 0, 0, 0xbe) // -0.125
		}
		rate := &tensor.Tensor{Name: "rate", DType: tensor.F32, Shape: []int{a.Heads}, Data: rates}
		bias := plantest.Weight(rng, "bias", tensor.F32, 1, a.Heads*a.Gates())
		p, err := plan.Build(func(b *plan.Builder) {
			table := func(name string, cols int) plan.Value {
				return b.Embed(plantest.Weight(rng, name, tensor.F32, 1, 64, cols))
			}
			q, k, v := table("q", a.KeyHeads*a.KeyDim), table("k", a.KeyHeads*a.KeyDim), table("v", a.Heads*a.ValueDim)
			beta, gate := table("beta", a.Heads), table("gate", a.Heads*a.Gates())
			for i := range layers {
				matrices, rows := a.States()
				a, state := a, b.State(matrices)
				a.Rows = b.State(rows)
				b.Layer(i)
				v = b.Delta(q, k, v, beta, gate, rate, bias, state, a)
			}
			b.Layer(plan.NoLayer)
			h := b.Pick(v)
			b.Output(h, h)
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct{ from, tokens int }{{64, 1}, {96, 1}, {126, 1}, {0, 256}} {
			b.Run(fmt.Sprintf("by channel %v, %d tokens at %d", byChannel, c.tokens, c.from), func(b *testing.B) {
				exe, err := cpu.New(0).Compile(b.Context(), p, plantest.LimitsFor(p, 256, 1, 256, 32, plan.Limits{Cache: tensor.F16}), nil)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = exe.Close() }()
				run := func(from, tokens int, in, out int32) (spent time.Duration, bytes int) {
					batch := &plan.Batch{Start: []int32{0, int32(tokens)}, Lengths: []int32{256}, Tables: make([]plan.PageTable, 2), Spans: true}
					for i := range tokens {
						batch.Tokens, batch.Positions = append(batch.Tokens, rng.Int32N(64)), append(batch.Positions, int32(from+i))
					}
					batch.Tables[0].Reset()
					batch.Tables[0].AddSlots(in, out)
					batch.Tables[1].Reset()
					batch.Tables[1].Add(0, 0, 1, 2, 3, 4, 5, 6, 7)
					step, err := exe.Submit(batch)
					if err != nil {
						b.Fatal(err)
					}
					res, err := step.Wait(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					for _, s := range res.Spans {
						if strings.Contains(s.Kernel, "delta") {
							spent, bytes = spent+s.Time, bytes+s.Bytes
						}
					}
					step.Release()
					return spent, bytes
				}
				in, out := int32(-1), int32(1)
				if c.from > 0 {
					run(0, c.from, -1, 0)
					in, out = 0, -1
				}
				var spent time.Duration
				var bytes int
				for b.Loop() {
					s, n := run(c.from, c.tokens, in, out)
					spent, bytes = spent+s, bytes+n
				}
				b.ReportMetric(float64(spent.Microseconds())/float64(b.N*layers*c.tokens), "us/token/layer")
				b.ReportMetric(float64(bytes)/spent.Seconds()/1e9, "GB/s")
				b.ReportMetric(float64(bytes)/float64(b.N*layers)/1e6, "MB/step/layer")
			})
		}
	}
}
