package plantest

import (
	"testing"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// layers runs steps, some of them with Trace, two in flight at a time.
func layers(t *testing.T, b plan.Backend) {
	p := Model(t, nil)
	r := runner(t, b, p, 64, 1, 64, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
	tables := make([]plan.PageTable, len(p.Groups))
	for g := range tables {
		size := r.Limits.PageTokens
		tables[g] = plan.PageTable{Start: []int32{0, int32(64 / size)}, First: []int32{0}}
		for i := range 64 / size {
			tables[g].Pages = append(tables[g].Pages, int32(i))
		}
	}
	list := ids(newRand(26), 64, modelVocab)
	batch := func(from, to int, wanted, traced bool) *plan.Batch {
		b := &plan.Batch{Tokens: list[from:to], Start: []int32{0, int32(to - from)}, Lengths: []int32{64}, Tables: tables, Trace: traced}
		for i := from; i < to; i++ {
			b.Positions = append(b.Positions, int32(i))
		}
		if wanted {
			b.Rows = []plan.Row{{Token: int32(to - from - 1), Want: plan.WantToken | plan.WantLogits}}
		}
		return b
	}
	submit := func(b *plan.Batch) plan.Step {
		t.Helper()
		s, err := r.Exe.Submit(b)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// run makes one pass over the tokens; step i has Trace if bit i of traced is set.
	run := func(traced int) (logits [][]float32) {
		t.Helper()
		var under []plan.Step
		var begun []time.Time // of all steps submitted
		first := 0            // number of the oldest step in flight
		take := func() {
			t.Helper()
			res, spent := wait(t, under[0]), time.Since(begun[first])
			wanted := traced>>first&1 == 1
			if (res.Layers != nil) != wanted {
				t.Errorf("step %d, traced: %v: the time by layer is %v", first, wanted, res.Layers)
			}
			if wanted {
				timesOf(t, p, res.Layers, spent)
			}
			for _, row := range res.Logits {
				logits = append(logits, append([]float32(nil), row...))
			}
			under[0].Release()
			under, first = under[1:], first+1
		}
		for i, at := range []int{0, 40, 56, 57, 58, 59} {
			to := []int{40, 56, 57, 58, 59, 60}[i]
			if len(under) == 2 {
				take()
			}
			begun = append(begun, time.Now())
			under = append(under, submit(batch(at, to, i > 0, traced>>i&1 == 1)))
		}
		for len(under) > 0 {
			take()
		}
		return logits
	}
	want := run(0)
	for _, traced := range []int{0b111111, 0b010101, 0b101010, 0b000110, 0} {
		same(t, "with steps traced", run(traced), want)
	}
}

// timesOf checks the layer times of a step that took at most most. Every layer has work to do.
func timesOf(t *testing.T, p *plan.Program, times []time.Duration, most time.Duration) {
	t.Helper()
	if len(times) != p.Layers()+1 {
		t.Errorf("%d times for %d layers, want one more", len(times), p.Layers())
	}
	sum := time.Duration(0)
	for i, d := range times {
		if sum += d; d <= 0 {
			t.Errorf("time %d of %d is %v", i, len(times), d)
		}
	}
	if sum > most {
		t.Errorf("the layers took %v of the %v in which the step was done", sum, most)
	}
}
