package cuda

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// tick is what the driver without a GPU says that a launch takes, and an event.
const tick = time.Millisecond / 2

// submitTraced begins a step that is traced or not.
func submitTraced(t *testing.T, e *executable, b *plan.Batch, traced bool) plan.Step {
	t.Helper()
	b.Trace = traced
	s, err := e.Submit(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// layersOf is the time by layer of a step, which is over and given back.
func layersOf(t *testing.T, s plan.Step) []time.Duration {
	t.Helper()
	r, err := s.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	layers := slices.Clone(r.Layers)
	s.Release()
	return layers
}

// A traced step has the launches that a graph has, with an event where another layer
// begins, or sampling; steps beside it have graphs.
func TestTracedStep(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	e := compiled(t, b, p, limitsFor(p, 8, 4))
	var places []int
	for i, l := range slices.Concat(e.forward, e.sample) {
		if places = append(places, l.place); l.place > 0 && l.place != places[i-1] && l.name != "norm norm" {
			t.Errorf("layer %d begins with %q", l.place-1, l.name)
		}
	}
	if got, want := slices.Compact(places), []int{0, 1, 2, 3, 0}; !slices.Equal(got, want) {
		t.Fatalf("launches are of %v, want %v", got, want)
	}
	count := func(do func()) (launches, graphs, events int) {
		launches, graphs, events = f.Calls("cuLaunchKernelEx"), f.Calls("cuGraphLaunch"), f.Calls("cuEventRecord")
		do()
		return f.Calls("cuLaunchKernelEx") - launches, f.Calls("cuGraphLaunch") - graphs, f.Calls("cuEventRecord") - events
	}
	rowless := func() *plan.Batch {
		b := batchOf(p, 2, 0, 3)
		b.Rows = nil
		return b
	}
	adjusted := func() *plan.Batch {
		b := batchOf(p, 4, 3, 1)
		b.Rows[0].Adjustments = []sample.Adjustment{{Token: 3, Bias: 1}}
		return b
	}
	for _, test := range []struct {
		name   string
		batch  func() *plan.Batch
		timers int
	}{
		{"decoding", func() *plan.Batch { return batchOf(p, 2, 3, 1) }, 7},
		{"a prompt", func() *plan.Batch { return batchOf(p, 1, 0, 7) }, 7},
		{"without a row", rowless, 6},
		{"with adjustments", adjusted, 7},
	} {
		name, batch, timers := test.name, test.batch, test.timers
		captured, _, _ := count(func() { layersOf(t, submitTraced(t, e, batch(), false)) })
		var layers []time.Duration
		launches, graphs, events := count(func() { layers = layersOf(t, submitTraced(t, e, batch(), true)) })
		if graphs != 0 || events != timers+1 || launches != captured || launches == 0 {
			t.Errorf("%s: %d launches of %d, %d graphs, %d events, want %d and the step's end", name, launches, captured, graphs, events, timers)
		}
		sum := time.Duration(0)
		for _, d := range layers {
			sum += d
		}
		if want := time.Duration(launches+timers-1) * tick; len(layers) != 4 || layers[1] != layers[2] || layers[2] != layers[3] || layers[1] < 3*tick || sum != want {
			t.Errorf("%s: the layers, which are alike, took %v, want %v in all", name, layers, want)
		}
		launches, graphs, events = count(func() { layers = layersOf(t, submitTraced(t, e, batch(), false)) })
		if launches != 0 || graphs == 0 || events != 1 || layers != nil {
			t.Errorf("%s, not traced: %d launches, %d graphs, %d events, the layers took %v", name, launches, graphs, events, layers)
		}
	}
}

// Two steps under way have their own timers, which later ones use again.
func TestTracedStepsBeside(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	want := layersOf(t, submitTraced(t, e, batchOf(p, 2, 0, 1), true))
	made := 0
	for i := range 20 {
		if i == 8 {
			made = f.Calls("cuEventCreate")
		}
		release := f.Hold("cuEventSynchronize")
		first := submitTraced(t, e, batchOf(p, 2, i, 1), i%4 != 1)
		second := submitTraced(t, e, batchOf(p, 2, i, 1), i%4 != 2)
		release()
		for k, s := range []plan.Step{first, second} {
			layers := layersOf(t, s)
			if traced := i%4 != k+1; traced && !slices.Equal(layers, want) || !traced && layers != nil {
				t.Errorf("step %d of pair %d, traced: %v: the layers took %v", k, i, traced, layers)
			}
		}
	}
	if n := f.Calls("cuEventCreate"); n != made {
		t.Errorf("%d events are made for steps like those before", n-made)
	}
}

// What fails in measuring a step ends that step, and later ones are measured again.
func TestTracedStepFails(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	want := layersOf(t, submitTraced(t, e, batchOf(p, 1, 0, 1), true))
	for _, call := range []string{"cuEventCreate", "cuEventRecord", "cuLaunchKernelEx", "cuEventElapsedTime"} {
		x := batchOf(p, 1, 0, 1)
		x.Trace = true
		var beside plan.Step
		if call == "cuEventCreate" { // which a step that has run once does no longer
			beside = submitTraced(t, e, batchOf(p, 1, 0, 1), false)
		}
		f.Fail(call, 2, driver.OutOfMemory)
		if err := run(e, x); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s fails: %v", call, err)
		}
		f.Mend()
		if beside != nil {
			layersOf(t, beside)
		}
		if layers := layersOf(t, submitTraced(t, e, x, true)); !slices.Equal(layers, want) {
			t.Errorf("after %s failed the layers took %v", call, layers)
		}
	}
}
