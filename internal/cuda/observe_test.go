package cuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// observedLimits returns limitsFor with observable values.
func observedLimits(p *plan.Program, tokens, seqs int) plan.Limits {
	lim := limitsFor(p, tokens, seqs)
	lim.Observed = true
	return lim
}

// An observed step has the launches of a graph. It reports every value that a stage writes once,
// in order, except for norms that products of a single row compute themselves.
func TestObservedStep(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	for _, test := range []struct {
		name  string
		batch func() *plan.Batch
	}{
		{"a prompt", func() *plan.Batch { return batchOf(p, 1, 0, 7) }},
		{"a single token", func() *plan.Batch { return batchOf(p, 1, 3, 1) }},
		{"decoding", func() *plan.Batch { return batchOf(p, 3, 3, 1) }},
		{"without a row", func() *plan.Batch {
			b := batchOf(p, 2, 0, 3)
			b.Rows = nil
			return b
		}},
	} {
		name, plain, x := test.name, test.batch(), test.batch()
		e := compiled(t, b, p, observedLimits(p, 8, 4))
		launches := f.Calls("cuLaunchKernelEx")
		if err := run(e, plain); err != nil {
			t.Fatal(err)
		}
		captured := f.Calls("cuLaunchKernelEx") - launches
		rows := func(v plan.Value) int { return x.Size(p.Shapes[v][0]) }
		var want, got []plan.Value
		for i := range e.layout.Stages {
			for _, v := range e.layout.Stages[i].IO().Out {
				if rows(v) > 0 && (e.layout.Normed[v] == nil || lower.Power(rows(v)) > 1) {
					want = append(want, v)
				}
			}
		}
		x.Observe = func(v plan.Value, values []float32) {
			if got = append(got, v); len(values) != rows(v)*int(p.Shapes[v][1]) {
				t.Errorf("%s: %%%d has %d values", name, v, len(values))
			}
		}
		launches, graphs, memory := f.Calls("cuLaunchKernelEx"), f.Calls("cuGraphLaunch"), f.Calls("cuMemAlloc")
		if err := run(e, x); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are observed, want %v", name, got, want)
		}
		if n := f.Calls("cuLaunchKernelEx") - launches; n != captured || f.Calls("cuGraphLaunch") != graphs || f.Calls("cuMemAlloc") != memory {
			t.Errorf("%s: %d launches of %d, %d graphs, %d pieces of memory", name, n, captured, f.Calls("cuGraphLaunch")-graphs, f.Calls("cuMemAlloc")-memory)
		}
	}
}

// Observed values are those in device memory, row by row.
func TestObservedValues(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	e := compiled(t, b, p, observedLimits(p, 8, 4))
	v := p.Logits
	at := e.layout.Forms(e.scratchAt, v)
	want := make([]float32, 3*int(at.Cols))
	memory := make([]float32, 3*int(at.Stride))
	for i := range want {
		want[i] = float32(i)
		memory[i/int(at.Cols)*int(at.Stride)+i%int(at.Cols)] = float32(i)
	}
	bytes := make([]byte, 4*len(memory))
	copy(device.Words[float32](bytes), memory)
	if err := b.Main.Do(func() error { return b.Main.CopyToDevice(at.F32, bytes) }); err != nil {
		t.Fatal(err)
	}
	x := batchOf(p, 3, 3, 1)
	x.Observe = func(got plan.Value, values []float32) {
		if got == v && !slices.Equal(values, want) {
			t.Errorf("observed are %v, want %v", values, want)
		}
	}
	if err := run(e, x); err != nil {
		t.Fatal(err)
	}
}

// A failure while observing a step fails that step alone.
func TestObservedStepFails(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, plantest.Dtypes[0])
	e := compiled(t, b, p, observedLimits(p, 8, 2))
	observing := func(observe func(plan.Value, []float32)) *plan.Batch {
		x := batchOf(p, 1, 0, 1)
		x.Observe = observe
		return x
	}
	good := func() {
		t.Helper()
		n := 0
		if err := run(e, observing(func(plan.Value, []float32) { n++ })); err != nil || n == 0 {
			t.Errorf("%d values are observed, error %v", n, err)
		}
	}
	good()
	for _, call := range []string{"cuStreamSynchronize", "cuMemcpyDtoH", "cuLaunchKernelEx"} {
		f.Fail(call, 2, driver.OutOfMemory)
		if err := run(e, observing(func(plan.Value, []float32) {})); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s fails: %v", call, err)
		}
		f.Mend()
		good()
	}
	if err := run(e, observing(func(plan.Value, []float32) { panic("a mistake") })); err == nil || !strings.Contains(err.Error(), "a mistake") {
		t.Errorf("who observes panics: %v", err)
	}
	good()
	lim := limitsFor(p, 8, 2)
	if n, more := b.Scratch(p, lim), b.Scratch(p, observedLimits(p, 8, 2)); more < n {
		t.Errorf("scratch is %d bytes, and %d with values that may be observed", n, more)
	}
	unobserved, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unobserved.Submit(observing(func(plan.Value, []float32) {})); !errors.Is(err, plan.ErrBatch) {
		t.Errorf("an executable that was not made for it is observed: %v", err)
	}
	if err := unobserved.Close(); err != nil {
		t.Error(err)
	}
}
