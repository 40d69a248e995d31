package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// BenchmarkStates measures layers of Mamba-2 and of Mamba with the widths of published models, also
// as a multiple of the time of the same layers with their products alone.
func BenchmarkStates(b *testing.B) {
	const vocab, d, inner, layers, taps = 64, 2560, 5120, 4, 4
	rng := rand.New(rand.NewPCG(1, 2))
	weight := func(t tensor.DType, shape ...int) *tensor.Tensor { return plantest.Weight(rng, "w", t, 0.02, shape...) }
	decays := func(shape ...int) *tensor.Tensor {
		w := weight(tensor.F32, shape...)
		for i := 3; i < len(w.Data); i += 4 {
			w.Data[i] |= 0x80 // the sign
		}
		return w
	}
	program := func(mix func(b *plan.Builder, h plan.Value) plan.Value) *plan.Program {
		p, err := plan.Build(func(b *plan.Builder) {
			x := b.Embed(weight(tensor.F32, vocab, d))
			for i := range layers {
				b.Layer(i)
				h := b.RMSNorm(x, weight(tensor.F32, d), 1e-5)
				y := b.GLU(b.Linear(h, weight(tensor.Q8_0, inner, d), nil), mix(b, h), plan.GLUAttr{Act: plan.SiLU})
				x = b.Add(x, b.Linear(y, weight(tensor.Q8_0, d, inner), nil))
			}
			y := b.Pick(x)
			b.Output(y, y)
		})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	convolved := func(b *plan.Builder, h plan.Value, width int) plan.Value {
		state := b.State(plan.State{Name: "conv", Kind: plan.PerSequence, Size: (taps - 1) * width})
		return b.Activate(b.Conv(b.Linear(h, weight(tensor.Q8_0, width, d), nil), weight(tensor.F32, width, taps), nil, state), plan.SiLU)
	}
	a := plan.StateSpaceAttr{Heads: inner / 64, HeadDim: 64, Groups: 1, States: 128}
	programs := map[string]*plan.Program{
		"products": program(func(b *plan.Builder, h plan.Value) plan.Value { return b.Linear(h, weight(tensor.Q8_0, inner, d), nil) }),
		"mamba2": program(func(b *plan.Builder, h plan.Value) plan.Value {
			a := a
			a.A, a.Skip, a.StepBias = decays(a.Heads), weight(tensor.F32, a.Heads), weight(tensor.F32, a.Heads)
			return b.StateSpace(convolved(b, h, a.Width()), b.Linear(h, weight(tensor.Q8_0, a.Heads, d), nil), "h", a)
		}),
		"mamba": program(func(b *plan.Builder, h plan.Value) plan.Value {
			const states, rank = 16, 160
			u := convolved(b, h, inner)
			small := func(rows int) plan.Value { return b.Linear(u, weight(tensor.Q8_0, rows, inner), nil) }
			state := b.State(plan.State{Name: "h", Kind: plan.PerSequence, Size: states * inner})
			return b.Scan(u, b.Linear(small(rank), weight(tensor.Q8_0, inner, rank), nil), small(states), small(states), decays(inner, states), weight(tensor.F32, inner), state)
		}),
	}
	for _, tokens := range []int{1, 256} {
		times := map[string]float64{}
		for _, name := range []string{"products", "mamba2", "mamba"} {
			b.Run(fmt.Sprintf("T=%d/%s", tokens, name), func(b *testing.B) {
				spare(b, 2)
				p := programs[name]
				r, err := plantest.NewRunner(New(0), p, plantest.LimitsFor(p, 256, 1, 1<<14, 32, plan.Limits{Cache: tensor.F16, Activations: tensor.Q8_0}))
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = r.Exe.Close() }()
				s := r.Add(nil, 256)
				step := func() {
					for range s.Chunk {
						s.IDs = append(s.IDs, int32(len(s.IDs)*5%vocab))
					}
					if _, err := r.Step(); err != nil {
						b.Fatal(err)
					}
				}
				step()
				s.Chunk = tokens
				begun, steps := time.Now(), 0
				for b.Loop() && len(s.IDs)+tokens < 1<<14 {
					step()
					steps++
				}
				times[name] = float64(time.Since(begun)) / float64(steps)
				if name != "products" && times["products"] > 0 {
					b.ReportMetric(times[name]/times["products"], "×products")
				}
			})
		}
	}
}
