package arch_test

import (
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Weights that a checkpoint stores as several tensors give the same logits as plain weights of the
// same values.
func TestDerivedWeights(t *testing.T) {
	all := backends(t)
	for _, l := range modeltest.Layouts() {
		quantised, plain := derivedModels(t, l)
		for name, b := range all {
			t.Run(l.Name+"/"+name, func(t *testing.T) { sameModel(t, b, quantised, plain) })
		}
	}
}

// derivedModels returns a model in a layout, and one with the values of the layout.
func derivedModels(t *testing.T, l *modeltest.Layout) (quantised, plain *arch.Model) {
	t.Helper()
	build := func(o modeltest.Option) *arch.Model {
		m, err := buildFile(t, modeltest.Hub(t, o, modeltest.Seed(5)))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	quantised, plain = build(modeltest.Quantised(l)), build(modeltest.Dequantised(l))
	derived := 0
	for _, w := range quantised.Program.Weights() {
		if w.Source != nil && w.DType == l.DType {
			derived++
		}
	}
	if want := 7 * quantised.Spec.Layers; derived != want {
		t.Fatalf("%s: %d weights are derived and %v, want %d", l.Name, derived, l.DType, want)
	}
	return quantised, plain
}

// sameModel compares logits. With rounded activations the formats are multiplied in bytes; with
// float32 the result equals that of plain weights.
func sameModel(t *testing.T, b plan.Backend, quantised, plain *arch.Model) {
	most := 5e-2
	if b.Rounds() == tensor.F16 {
		most = 5e-3
	}
	for _, n := range []struct {
		activations tensor.DType
		bound       float64
	}{{tensor.F32, 1e-6}, {b.Rounds(), most}} {
		run := func(m *arch.Model) [][]float32 {
			limits := plan.Limits{Cache: tensor.F32, Activations: n.activations}
			r, err := plantest.NewRunner(b, m.Program, plantest.LimitsFor(m.Program, 64, 1, 64, 16, limits))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Exe.Close() }()
			ids := make([]int32, 40)
			for i := range ids {
				ids[i] = int32(i * 5)
			}
			s := r.Add(ids, 33)
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			return s.Logits
		}
		if rel := relative(run(quantised), run(plain)); !(rel < n.bound) {
			t.Errorf("%v activations: relative error %.3g, want below %g", n.activations, rel, n.bound)
		}
	}
}
