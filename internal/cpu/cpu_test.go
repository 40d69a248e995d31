package cpu_test

import (
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

func TestReference(t *testing.T) {
	longtest.Short(t) // TestParallel runs the long form
	plantest.All(t, cpu.Reference())
}

// Activation formats of other backends are refused.
func TestActivations(t *testing.T) {
	p := plantest.Model(t, nil)
	_, err := cpu.New(1).Compile(t.Context(), p, plantest.LimitsFor(p, 1, 1, 16, 16, plan.Limits{Activations: tensor.F16}), nil)
	if err == nil || err.Error() != "cpu: no F16 activations; use F32 or Q8_0" {
		t.Errorf("F16 activations: %v", err)
	}
}

func TestParallel(t *testing.T) {
	for i, tier := range longtest.Cases(cpu.Tiers(), cpu.Tiers()[:1]) {
		// That threads change no bit is a test of its own.
		t.Run(tier+", 3 threads", func(t *testing.T) {
			if i > 0 {
				longtest.Short(t) // the best tier runs the long form
			}
			b, err := cpu.New(3).WithTier(tier)
			if err != nil {
				t.Fatal(err)
			}
			plantest.All(t, b)
		})
	}
}
