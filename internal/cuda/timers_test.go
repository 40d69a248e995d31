package cuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// tick is the time that the fake driver reports for a launch or an event.
const tick = time.Millisecond / 2

// submitTraced submits a step, traced or not.
func submitTraced(t *testing.T, e *executable, b *plan.Batch, traced bool) plan.Step {
	t.Helper()
	b.Trace = traced
	s, err := e.Submit(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// layersOf waits for a step, releases it, and returns its time by layer.
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

// A traced step has the launches of a graph, with an event at the start of each layer and of
// sampling. Steps running at the same time use graphs.
func TestTracedStep(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	e := compiled(t, b, p, limitsFor(p, 8, 4))
	var places []int
	for i, l := range slices.Concat(e.parts[0].forward, e.parts[0].sample) {
		if places = append(places, l.Place); l.Place > 0 && l.Place != places[i-1] && l.Name != "norm rms_2048" {
			t.Errorf("layer %d begins with %q", l.Place-1, l.Name)
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

// Two running steps have separate timers, which later steps reuse.
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

// A failure while timing a step fails that step. Later steps are timed again.
func TestTracedStepFails(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	want := layersOf(t, submitTraced(t, e, batchOf(p, 1, 0, 1), true))
	for _, call := range []string{"cuEventCreate", "cuEventRecord", "cuLaunchKernelEx", "cuEventElapsedTime"} {
		x := batchOf(p, 1, 0, 1)
		x.Trace = true
		var beside plan.Step
		if call == "cuEventCreate" { // a step that has run before creates no events
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

// done returns a completed step and its result. The step must not be released before the result is
// read.
func done(t *testing.T, e plan.Executable, b *plan.Batch) (plan.Step, *plan.Result) {
	t.Helper()
	s, err := e.Submit(b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// A timed step is three graphs between four timers: before the layers, the rest, and sampling.
// Untimed steps have two.
func TestTimedStep(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	e := compiled(t, b, p, limitsFor(p, 8, 4))
	for _, test := range []struct {
		name           string
		rows           bool
		graphs, events int
	}{{"decoding", true, 3, 4}, {"without a row", false, 2, 3}} {
		for range 2 { // with capture, then without
			x := batchOf(p, 2, 3, 1)
			if x.Timed = true; !test.rows {
				x.Rows = nil
			}
			graphs, events := f.Calls("cuGraphLaunch"), f.Calls("cuEventRecord")
			s, r := done(t, e, x)
			// Each graph takes a tick, and so does the timer after it.
			want := plan.Times{Embed: 2 * tick, Total: 4 * tick}
			if test.rows {
				want.Choose, want.Total = 2*tick, 6*tick
			}
			if r.Times != want || r.Layers != nil || r.Spans != nil {
				t.Errorf("%s: %+v, want %+v; %d layers, %d spans", test.name, r.Times, want, len(r.Layers), len(r.Spans))
			}
			if graphs, events = f.Calls("cuGraphLaunch")-graphs, f.Calls("cuEventRecord")-events; graphs != test.graphs || events != test.events+1 {
				t.Errorf("%s: %d graphs, %d events, want %d and %d and the step's end", test.name, graphs, events, test.graphs, test.events)
			}
			before := 0 // launches before the layers
			for e.parts[0].forward[before].Place == 0 {
				before++
			}
			for _, cut := range [][2]int{{0, before}, {before, len(e.parts[0].forward)}} {
				if e.graphs[piece{shape: s.(*step).sh, from: cut[0], to: cut[1]}] == nil {
					t.Errorf("%s: there is no graph of the launches %d to %d", test.name, cut[0], cut[1])
				}
			}
			s.Release()
			x.Timed = false
			graphs, events = f.Calls("cuGraphLaunch"), f.Calls("cuEventRecord")
			if s, r = done(t, e, x); r.Times != (plan.Times{}) {
				t.Errorf("%s, not timed: %+v", test.name, r.Times)
			}
			if graphs, events = f.Calls("cuGraphLaunch")-graphs, f.Calls("cuEventRecord")-events; graphs != test.graphs-1 || events != 1 {
				t.Errorf("%s, not timed: %d graphs, %d events", test.name, graphs, events)
			}
			s.Release()
		}
	}
}

// The spans of a step are its launches, in order, each with the kernel that runs.
func TestSpans(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	b.timer = 0 // pretend that the cost of a timer is measured
	for name, p := range map[string]*plan.Program{"dense": plantest.Model(t, nil), "experts": plantest.MoEModel(t, nil)} {
		e := compiled(t, b, p, limitsFor(p, 16, 4))
		for _, test := range []struct {
			name  string
			batch *plan.Batch
		}{
			{"one token", batchOf(p, 1, 3, 1)}, {"decoding", batchOf(p, 3, 3, 1)}, {"a prompt", batchOf(p, 1, 0, 12)},
		} {
			before := len(f.Launches())
			test.batch.Spans = true
			s, r := done(t, e, test.batch)
			launched := f.Launches()[before:]
			if len(r.Spans) != len(launched) || len(launched) == 0 {
				t.Fatalf("%s, %s: %d spans of %d launches", name, test.name, len(r.Spans), len(launched))
			}
			begin, bytes := time.Duration(0), 0
			for i, x := range r.Spans {
				kernel := launched[i].Kernel
				if !strings.HasSuffix(x.Kernel, " "+kernel) {
					t.Errorf("%s, %s: span %d is of %q, the launch of %q", name, test.name, i, x.Kernel, kernel)
				}
				if x.Begin != begin || x.Time != 2*tick || x.Where == "" || x.Bytes <= 0 {
					t.Errorf("%s, %s: span %d: %+v, want it from %v on", name, test.name, i, x, begin)
				}
				begin += x.Time
				bytes += x.Bytes
			}
			for i := range p.Nodes {
				n := &p.Nodes[i]
				if !slices.ContainsFunc(r.Spans, func(x plan.Span) bool {
					return x.Layer == n.Layer && strings.Contains(x.Where, n.Op.String()) && (n.Weight == nil || strings.Contains(x.Where, n.Weight.Name))
				}) {
					t.Errorf("%s, %s: no span is of %s", name, test.name, n.Where())
				}
				if n.Op == plan.Linear {
					bytes -= len(n.Weight.Data)
				}
			}
			if bytes < 0 {
				t.Errorf("%s, %s: %d bytes less than the weights have", name, test.name, -bytes)
			}
			if r.Times != (plan.Times{}) || r.Layers != nil {
				t.Errorf("%s, %s: times %+v and layers %v that nobody wants", name, test.name, r.Times, r.Layers)
			}
			s.Release()
		}
	}
}

// A single token moves its weights and its context, and little else.
func TestSpanBytes(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.Q8_0)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	span := func(x *plan.Batch, where string) (bytes int) {
		x.Spans = true
		s, r := done(t, e, x)
		defer s.Release()
		for _, x := range r.Spans {
			if strings.Contains(x.Where, where) {
				bytes += x.Bytes
			}
		}
		return bytes
	}
	const tile, powers = 16 * 256 * 34 / 32, 4 * 16 // bytes of a tile and of the powers of 16 rows
	for _, test := range []struct {
		where           string
		batch           *plan.Batch
		weights, values int
	}{
		{"rmsnorm norm; linear q, k, v", batchOf(p, 1, 3, 1), 32 * (tile + powers), 2*1024 + 4*512}, // the norm's weight and input
		{"linear q, k, v", batchOf(p, 2, 3, 2), 32 * (tile + powers), 4 * (2*256 + 4*512)},
		{"linear gate, up; glu", batchOf(p, 1, 3, 1), 32 * (tile + powers), 2*1024 + 2*256},
		{"linear down; add", batchOf(p, 1, 3, 1), 16 * (tile + powers), 2*256 + 2*4*256},
		{"linear head", batchOf(p, 2, 3, 2), 3 * (tile + powers), 2 * (2*256 + 4*decoderVocab)},
		// Keys and values of 4 positions and of the token itself, 512 bytes each.
		{"attention", batchOf(p, 1, 3, 1), 5 * 512, 4*512 + 2*256},
		{"attention", batchOf(p, 2, 30, 1), 2 * 32 * 512, 2 * (4*512 + 2*256)},
		{"choice of tokens", batchOf(p, 2, 30, 1), 0, 2 * 2 * 4 * decoderVocab},
	} {
		if got := span(test.batch, test.where); got != test.weights+test.values {
			t.Errorf("%s, %d tokens: %d bytes, want %d and %d", test.where, len(test.batch.Tokens), got, test.weights, test.values)
		}
	}
}

// The cost of a timer is measured once, with the first spans, and leaves nothing behind.
func TestTimerCost(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	e := compiled(t, b, p, limitsFor(p, 16, 4))
	var launched []int
	for range 2 {
		before := len(f.Launches())
		x := batchOf(p, 1, 3, 1)
		x.Spans = true
		s, r := done(t, e, x)
		launched = append(launched, len(f.Launches())-before-len(r.Spans))
		s.Release()
	}
	if b.timer < 0 || launched[0] < measure.TimedLaunches || launched[1] != 0 {
		t.Errorf("beside their spans' launches, two steps had %v", launched)
	}
}
