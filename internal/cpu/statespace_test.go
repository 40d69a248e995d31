package cpu_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// States that grow by themselves are refused: kernels compute exponentials of numbers that are not
// positive.
func TestGrowingStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	weight := func(name string, shape ...int) *tensor.Tensor {
		return plantest.Weight(rng, name, tensor.F32, 1, shape...)
	}
	for name, mix := range map[string]func(b *plan.Builder, x plan.Value) plan.Value{
		"scan": func(b *plan.Builder, x plan.Value) plan.Value {
			state := b.State(plan.State{Name: "h", Kind: plan.PerSequence, Size: 16 * 16})
			return b.Scan(x, x, x, x, weight("a", 16, 16), weight("skip", 16), state)
		},
		"statespace": func(b *plan.Builder, x plan.Value) plan.Value {
			a := plan.StateSpaceAttr{Heads: 16, HeadDim: 2, Groups: 1, States: 1, A: weight("a", 16), Skip: weight("skip", 16), StepBias: weight("bias", 16)}
			return b.StateSpace(b.Linear(x, weight("in", a.Width(), 16), nil), x, "h", a)
		},
	} {
		p, err := plan.Build(func(b *plan.Builder) {
			y := b.Pick(mix(b, b.Embed(weight("table", 8, 16))))
			b.Output(y, y)
		})
		if err != nil {
			t.Fatal(err)
		}
		exe, err := cpu.New(1).Compile(t.Context(), p, plantest.LimitsFor(p, 4, 1, 16, 16, plan.Limits{Cache: tensor.F32}), nil)
		if err == nil {
			_ = exe.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "want a number that is not positive") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
