package cuda

import (
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// Steps with streamed layers can be observed like others. A layer's weights have a span.
func TestStreamedStepsLookedAt(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	b.timer = 0 // pretend that the cost of a timer is measured
	p := plantest.Model(t, nil)
	lim := observedLimits(p, 8, 4)
	lim.Weights, lim.Pinned = 1, math.MaxInt
	e := compiled(t, b, p, lim)
	if len(e.weights.Images) != 3 {
		t.Fatalf("%d layers stream", len(e.weights.Images))
	}
	for _, set := range []func(*plan.Batch){
		func(*plan.Batch) {}, func(b *plan.Batch) { b.Timed = true }, func(b *plan.Batch) { b.Trace = true },
		func(b *plan.Batch) { b.Spans = true }, func(b *plan.Batch) { b.Observe = func(plan.Value, []float32) {} },
	} {
		x := batchOf(p, 2, 3, 1)
		set(x)
		before := len(f.Launches())
		s, r := done(t, e, x)
		arrived := 0
		for _, span := range r.Spans {
			if strings.Contains(span.Where, "its weights come") {
				arrived += span.Bytes
			}
		}
		want := 0
		for _, image := range e.weights.Images {
			want += image.Bytes
		}
		if x.Spans && (arrived != want || len(r.Spans) != len(f.Launches())-before+3) {
			t.Errorf("%d bytes arrive, want %d; %d spans of %d launches", arrived, want, len(r.Spans), len(f.Launches())-before)
		}
		if x.Timed && (r.Times.Embed <= 0 || r.Times.Embed+r.Times.Choose >= r.Times.Total) {
			t.Errorf("times %+v", r.Times)
		}
		s.Release()
	}
}
