package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Nodes share their rotations if and only if these are equal.
func TestTurnsAreShared(t *testing.T) {
	const dim, tokens = 16, 37
	a := plan.RopeAttr{HeadDim: dim, Dims: 8, Freqs: []float64{1, 0.1, 0.01, 0.001}, Scale: 1}
	wider := a // another head size, the same rotations
	wider.HeadDim = 2 * dim
	middle := a
	middle.Freqs = []float64{1, 0.2, 0.01, 0.001}
	neighbours, scaled, long, dynamic := a, a, a, a
	neighbours.Interleaved = true
	scaled.Scale = 1.5
	long.LongFrom, long.LongFreqs = 5, middle.Freqs
	dynamic.LongFrom, dynamic.Dynamic = 5, &plan.DynamicNTK{Base: 1e4, Factor: 2}
	other := dynamic
	other.Dynamic = &plan.DynamicNTK{Base: 1e4, Factor: 3}
	attrs := []plan.RopeAttr{a, wider, middle, neighbours, scaled, long, dynamic, other, a, dynamic}

	table := plantest.Weight(rand.New(rand.NewPCG(19, 1)), "table", tensor.F32, 1, 50, 2*dim)
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(table)
		for _, a := range attrs {
			x = b.Rope(x, a)
		}
		y := b.Pick(x)
		b.Output(y, y)
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(b *Backend, chunk int) (*executable, [][]float32) {
		r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, tokens, 1, tokens, 16, plan.Limits{Cache: tensor.F32}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Exe.Close() }()
		ids := make([]int32, tokens)
		for i := range ids {
			ids[i] = int32(i * 7 % 50)
		}
		s := r.Add(ids, chunk)
		s.Prompt = 3
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		return r.Exe.(*executable), s.Logits
	}
	_, want := run(Reference(), tokens)
	for _, name := range Tiers() {
		b, err := New(2).WithTier(name)
		if err != nil {
			t.Fatal(err)
		}
		e, got := run(b, tokens)
		if n := len(e.code.rotations); n != 7 {
			t.Errorf("%s: %d rotations for %d nodes, want 7", name, n, len(attrs))
		}
		_, single := run(b, 1)
		for i, row := range want {
			for j, v := range row {
				closeTo(t, name, float64(got[i][j]), float64(v), 1e-5)
				if math.Float32bits(got[i][j]) != math.Float32bits(single[i][j]) {
					t.Fatalf("%s: token %d has other bits when it is alone", name, i)
				}
			}
		}
	}
}
