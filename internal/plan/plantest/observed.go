package plantest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A measured is a model in steps of which some are looked into: a prompt, the rest of it,
// and tokens one by one, for two sequences.
type measured struct {
	r      *Runner
	p      *plan.Program
	tables []plan.PageTable
	lists  [2][]int32
}

// measuredSteps are the tokens from and to of every sequence in each step; those of the
// first give no rows.
var measuredSteps = [][2]int{{0, 17}, {17, 20}, {20, 21}, {21, 22}}

func newMeasured(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits) *measured {
	t.Helper()
	m := &measured{p: p, r: runner(t, b, p, 80, 2, 64, base), lists: [2][]int32{ids(newRand(28), 64, modelVocab), ids(newRand(29), 64, modelVocab)}}
	for g := range p.Groups {
		table := plan.PageTable{Start: []int32{0}, First: []int32{0, 0}}
		for range m.lists {
			table.Pages = append(table.Pages, m.r.free[g][:64/m.r.Limits.PageTokens]...)
			m.r.free[g] = m.r.free[g][64/m.r.Limits.PageTokens:]
			table.Start = append(table.Start, int32(len(table.Pages)))
		}
		m.tables = append(m.tables, table)
	}
	return m
}

// batch is step i, of the first sequence alone or of both.
func (m *measured) batch(i, sequences int) *plan.Batch {
	from, to := measuredSteps[i][0], measuredSteps[i][1]
	b := &plan.Batch{Start: []int32{0}}
	for _, list := range m.lists[:sequences] {
		for pos := from; pos < to; pos++ {
			b.Tokens, b.Positions = append(b.Tokens, list[pos]), append(b.Positions, int32(pos))
		}
		b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, 64)
		if i > 0 {
			b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens) - 1), Want: plan.WantToken | plan.WantLogits | plan.WantHidden})
		}
	}
	for _, t := range m.tables {
		b.Tables = append(b.Tables, plan.PageTable{Pages: t.Pages[:t.Start[sequences]], Start: t.Start[:sequences+1], First: t.First[:sequences]})
	}
	return b
}

// run does all steps, which set may change, and calls done with each one's result.
func (m *measured) run(t *testing.T, sequences int, set func(i int, b *plan.Batch), done func(i int, b *plan.Batch, res *plan.Result)) (logits [][]float32, tokens []int32) {
	t.Helper()
	for i := range measuredSteps {
		b := m.batch(i, sequences)
		set(i, b)
		s, err := m.r.Exe.Submit(b)
		if err != nil {
			t.Fatal(err)
		}
		res := wait(t, s)
		for _, rows := range [][][]float32{res.Logits, res.Hidden} {
			for _, row := range rows {
				logits = append(logits, slices.Clone(row))
			}
		}
		tokens = append(tokens, res.Tokens...)
		done(i, b, res)
		s.Release()
	}
	return logits, tokens
}

// each runs f for every model and for both kinds of activations, with what the steps of
// one sequence and of two give when nobody looks.
func eachMeasured(t *testing.T, b plan.Backend, observed bool, f func(t *testing.T, m *measured, sequences int, logits [][]float32, tokens []int32)) {
	for name, model := range models {
		p := model(t, nil)
		for _, base := range []plan.Limits{{Cache: tensor.F32}, {Cache: tensor.F16, Activations: tensor.Q8_0}} {
			t.Run(name+", "+base.Activations.String()+" activations", func(t *testing.T) {
				plain := newMeasured(t, b, p, base)
				base.Observed = observed
				m := newMeasured(t, b, p, base)
				for sequences := 1; sequences <= len(m.lists); sequences++ {
					logits, tokens := plain.run(t, sequences, func(int, *plan.Batch) {}, func(int, *plan.Batch, *plan.Result) {})
					f(t, m, sequences, logits, tokens)
				}
			})
		}
	}
}

// observed looks at the values that steps write, which changes none of them.
func observed(t *testing.T, b plan.Backend) {
	p := Model(t, nil)
	refused := newMeasured(t, b, p, plan.Limits{Cache: tensor.F32}).batch(0, 1)
	refused.Observe = func(plan.Value, []float32) { t.Error("a value is observed that was not to be") }
	exe, err := b.Compile(context.Background(), p, LimitsFor(p, 80, 2, 64, 16, plan.Limits{Cache: tensor.F32}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	if _, err := exe.Submit(refused); !errors.Is(err, plan.ErrBatch) {
		t.Errorf("values are observed of an executable that was not made for that: error %v", err)
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

// observedStep checks what was seen of a step.
func (m *measured) observedStep(t *testing.T, i int, b *plan.Batch, res *plan.Result, seen map[plan.Value][]float32) {
	t.Helper()
	rows := func(v plan.Value) int {
		if m.p.Shapes[v][0] == plan.Rows {
			return len(b.Rows)
		}
		return len(b.Tokens)
	}
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
				t.Errorf("step %d: nothing is seen of %s, %%%d", i, n.Where(), n.Out)
			}
		}
	}
	if seen[m.p.Residual] == nil {
		t.Errorf("step %d: the residual is not seen", i)
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

// shown reports whether v is seen, or what is made of it element by element, which may be
// all that is written of it.
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
