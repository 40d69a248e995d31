package plantest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// observed checks the values passed to Observe, which must not change a bit.
func observed(t *testing.T, b plan.Backend) {
	p := Model(t, nil)
	refused := newMeasured(t, b, p, plan.Limits{Cache: tensor.F32}).batch(0, 1)
	refused.Observe = func(plan.Value, []float32) { t.Error("Observe was called in a step without it") }
	exe, err := b.Compile(context.Background(), p, LimitsFor(p, 80, 2, 64, 16, plan.Limits{Cache: tensor.F32}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	if _, err := exe.Submit(refused); !errors.Is(err, plan.ErrBatch) {
		t.Errorf("an executable compiled without Observed accepts Observe: error %v", err)
	}
	eachMeasured(t, b, true, func(t *testing.T, m *measured, sequences int, logits [][]float32, tokens []int32) {
		for _, which := range []func(i int) bool{func(int) bool { return true }, func(i int) bool { return i%2 == 1 }} {
			var seen map[plan.Value][]float32
			gotLogits, gotTokens := m.run(t, sequences, func(i int, b *plan.Batch) {
				if seen = nil; which(i) {
					seen = map[plan.Value][]float32{}
					b.Observe = func(v plan.Value, x []float32) {
						if seen[v] != nil {
							t.Errorf("step %d: %%%d is observed twice", i, v)
						}
						seen[v] = slices.Clone(x)
					}
				}
			}, func(i int, b *plan.Batch, res *plan.Result) {
				if which(i) {
					m.observedStep(t, i, b, res, seen)
				}
			})
			same(t, "with values observed", gotLogits, logits)
			if !slices.Equal(gotTokens, tokens) {
				t.Errorf("with values observed the tokens are %v, want %v", gotTokens, tokens)
			}
		}
	})
}

// observedStep checks the values observed in step i.
func (m *measured) observedStep(t *testing.T, i int, b *plan.Batch, res *plan.Result, seen map[plan.Value][]float32) {
	t.Helper()
	rows := func(v plan.Value) int { return b.Size(m.p.Shapes[v][0]) }
	for v, x := range seen {
		if want := rows(v) * int(m.p.Shapes[v][1]); len(x) != want || want == 0 {
			t.Errorf("step %d: %%%d has %d values, want %d", i, v, len(x), want)
		}
		for k, y := range x {
			if y-y != 0 {
				t.Errorf("step %d: element %d of %%%d is %v", i, k, v, y)
				break
			}
		}
	}
	for k := range m.p.Nodes {
		switch n := &m.p.Nodes[k]; n.Op {
		case plan.Linear, plan.Attention, plan.Experts, plan.Embed:
			if rows(n.Out) > 0 && !m.shown(n.Out, seen) {
				t.Errorf("step %d: %s, %%%d was not observed", i, n.Where(), n.Out)
			}
		}
	}
	if seen[m.p.Residual] == nil {
		t.Errorf("step %d: the residual was not observed", i)
	}
	for v, want := range map[plan.Value][][]float32{m.p.Logits: res.Logits, m.p.Hidden: res.Hidden} {
		cols := int(m.p.Shapes[v][1])
		for r, row := range want {
			if x := seen[v]; x == nil || !slices.Equal(x[r*cols:][:cols], row) {
				t.Errorf("step %d: row %d of %%%d is not what the step gives", i, r, v)
			}
		}
	}
}

// shown reports whether v was observed, or a value made of it element by element, which may be all
// that is written.
func (m *measured) shown(v plan.Value, seen map[plan.Value][]float32) bool {
	if seen[v] != nil {
		return true
	}
	for i := range m.p.Nodes {
		n := &m.p.Nodes[i]
		if slices.Contains(n.In, v) && (n.Op == plan.GLU || n.Op == plan.Map || n.Op == plan.Add) && m.shown(n.Out, seen) {
			return true
		}
	}
	return false
}
