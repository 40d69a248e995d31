package plantest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A measured is a model whose steps may be timed or observed: a prompt, the rest of it, and single
// tokens, for one or two sequences.
type measured struct {
	r      *Runner
	p      *plan.Program
	tables []plan.PageTable
	lists  [2][]int32
}

// measuredSteps holds the range of tokens of every sequence in each step. The first step has no
// rows. One step ends at a chunk of recurrent layers.
var measuredSteps = [][2]int{{0, 17}, {17, 63}, {63, 64}, {64, 65}}

// measuredTokens is the most tokens of a sequence.
const measuredTokens = 80

func newMeasured(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits) *measured {
	t.Helper()
	m := &measured{p: p, r: runner(t, b, p, 100, 2, measuredTokens, base), lists: [2][]int32{ids(newRand(28), measuredTokens, modelVocab), ids(newRand(29), measuredTokens, modelVocab)}}
	for g, group := range p.Groups {
		table := plan.PageTable{Start: []int32{0}}
		for range m.lists {
			if group.Kind == plan.PerSequence {
				continue // slotsOfStep has the slots
			}
			pages := measuredTokens / m.r.Limits.PageTokens
			table.Add(0, m.r.free[g][:pages]...)
			m.r.free[g] = m.r.free[g][pages:]
		}
		m.tables = append(m.tables, table)
	}
	return m
}

// batch returns step i, for the first sequence or for both.
func (m *measured) batch(i, sequences int) *plan.Batch {
	from, to := measuredSteps[i][0], measuredSteps[i][1]
	b := &plan.Batch{Start: []int32{0}}
	for _, list := range m.lists[:sequences] {
		for pos := from; pos < to; pos++ {
			b.Tokens, b.Positions = append(b.Tokens, list[pos]), append(b.Positions, int32(pos))
		}
		b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, measuredTokens)
		if i > 0 {
			b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens) - 1), Want: plan.WantToken | plan.WantLogits | plan.WantHidden})
		}
	}
	for g, t := range m.tables {
		if group := m.p.Groups[g]; group.Kind == plan.PerSequence {
			b.Tables = append(b.Tables, slotsOfStep(group, i, sequences))
			continue
		}
		b.Tables = append(b.Tables, plan.PageTable{Pages: t.Pages[:t.Start[sequences]], Start: t.Start[:sequences+1], First: t.First[:sequences]})
	}
	return b
}

// slotsOfStep returns the slots of step i: each sequence has two, which take turns.
func slotsOfStep(g plan.Group, i, sequences int) (t plan.PageTable) {
	t.Reset()
	for s := range int32(sequences) {
		in, out := int32(-1), int32(-1)
		for _, step := range measuredSteps[:i+1] {
			if out >= 0 {
				in = out
			}
			if out = -1; g.Taken(step[1]) > g.Taken(step[0]) {
				out = 2*s + (in+1)&1
			}
		}
		t.AddSlots(in, out)
	}
	return t
}

// run runs all steps. set may change a batch; done gets each step's result.
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

// eachMeasured calls f for every model and both kinds of activations, with one sequence and with
// two. It passes the results of steps without measurement.
func eachMeasured(t *testing.T, b plan.Backend, observed bool, f func(t *testing.T, m *measured, sequences int, logits [][]float32, tokens []int32)) {
	for name, model := range Models {
		p := model(t, nil)
		bases := []plan.Limits{{Cache: tensor.F16, Activations: b.Rounds()}, {Cache: tensor.F32}}
		for _, base := range longtest.Cases(bases, bases[:1]) {
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

// looked runs all steps, then every other step, with batches changed by set, which must not change
// a bit. check gets their results and an upper bound of their times.
func looked(t *testing.T, b plan.Backend, set func(b *plan.Batch), check func(t *testing.T, m *measured, b *plan.Batch, res *plan.Result, most time.Duration)) {
	eachMeasured(t, b, false, func(t *testing.T, m *measured, sequences int, logits [][]float32, tokens []int32) {
		for _, which := range longtest.Cases([]int{0b1111, 0b1010}, []int{0b1010}) {
			var begun time.Time
			gotLogits, gotTokens := m.run(t, sequences, func(i int, b *plan.Batch) {
				if begun = time.Now(); which>>i&1 == 1 {
					set(b)
				}
			}, func(i int, b *plan.Batch, res *plan.Result) {
				if which>>i&1 == 1 {
					check(t, m, b, res, time.Since(begun))
				} else if res.Times != (plan.Times{}) || res.Spans != nil || res.Layers != nil {
					t.Errorf("a step without Timed, Spans or Trace has times %v, %d spans, layers %v", res.Times, len(res.Spans), res.Layers)
				}
			})
			same(t, "with steps that are timed", gotLogits, logits)
			if !slices.Equal(gotTokens, tokens) {
				t.Errorf("with steps that are timed the tokens are %v, want %v", gotTokens, tokens)
			}
		}
	})
}

// timed sets Timed.
func timed(t *testing.T, b plan.Backend) {
	looked(t, b, func(b *plan.Batch) { b.Timed = true }, func(t *testing.T, m *measured, b *plan.Batch, res *plan.Result, most time.Duration) {
		timesOfParts(t, b, res.Times, most)
		if res.Spans != nil || res.Layers != nil {
			t.Errorf("%d spans and the layers %v were not wanted", len(res.Spans), res.Layers)
		}
	})
}

// timesOfParts checks the times of a step that took at most most.
func timesOfParts(t *testing.T, b *plan.Batch, x plan.Times, most time.Duration) {
	t.Helper()
	if x.Embed <= 0 || x.Choose < 0 || x.Choose == 0 && len(b.Rows) > 0 || x.Embed+x.Choose >= x.Total || x.Total > most {
		t.Errorf("a step of %d rows that was done in %v has the times %+v", len(b.Rows), most, x)
	}
}

// spans sets Spans.
func spans(t *testing.T, b plan.Backend) {
	looked(t, b, func(b *plan.Batch) { b.Spans = true }, func(t *testing.T, m *measured, b *plan.Batch, res *plan.Result, most time.Duration) {
		m.spansOf(t, b, res.Spans, most)
		if res.Times != (plan.Times{}) || res.Layers != nil {
			t.Errorf("the times %+v and the layers %v were not wanted", res.Times, res.Layers)
		}
	})
	all := func(b *plan.Batch) { b.Spans, b.Timed, b.Trace = true, true, true }
	looked(t, b, all, func(t *testing.T, m *measured, b *plan.Batch, res *plan.Result, most time.Duration) {
		m.spansOf(t, b, res.Spans, most)
		timesOfParts(t, b, res.Times, most)
		timesOf(t, m.p, res.Layers, most)
		layers, sum := make([]time.Duration, m.p.Layers()+1), time.Duration(0)
		for _, s := range res.Spans {
			sum += s.Time
			layers[s.Layer-plan.NoLayer] += s.Time
		}
		if sum != res.Times.Total || !slices.Equal(layers, res.Layers) {
			t.Errorf("the spans are %v in all, by layer %v; the step says %v and %v", sum, layers, res.Times.Total, res.Layers)
		}
	})
}

// spansOf checks the spans of a step that took at most most.
func (m *measured) spansOf(t *testing.T, b *plan.Batch, all []plan.Span, most time.Duration) {
	t.Helper()
	layer := func(l int) string {
		var where []string
		for _, s := range all {
			if s.Layer == l {
				where = append(where, s.Where)
			}
		}
		return strings.Join(where, "\n")
	}
	end, weights := time.Duration(0), 0
	for i, s := range all {
		if s.Kernel == "" || s.Where == "" || strings.Contains(s.Kernel, ", ") || s.Time < 0 || s.Bytes <= 0 || s.Begin < end {
			t.Errorf("span %d, after one that ends at %v: %+v", i, end, s)
		}
		if i > 0 && s.Layer < all[i-1].Layer && s.Layer != plan.NoLayer {
			t.Errorf("span %d is of layer %d after %d", i, s.Layer, all[i-1].Layer)
		}
		end, weights = s.Begin+s.Time, weights+s.Bytes
	}
	if end > most {
		t.Errorf("the spans end after %v of the %v in which the step was done", end, most)
	}
	for i := range m.p.Nodes {
		n := &m.p.Nodes[i]
		if b.Size(m.p.Shapes[n.Out][0]) == 0 {
			continue
		}
		where := layer(n.Layer)
		if !strings.Contains(where, n.Op.String()) || n.Weight != nil && !strings.Contains(where, n.Weight.Name) {
			t.Errorf("no span says that it is of %s, %%%d; those of the layer are\n%s", n.Where(), n.Out, where)
		}
		if n.Op == plan.Linear {
			weights -= len(n.Weight.Data)
		}
	}
	if weights < 0 {
		t.Errorf("the spans read %d bytes less than the weights of products have", -weights)
	}
}
