// Package measure measures a GPU and its steps: timers between launches, the cost of a timer, the
// bandwidth of memory and of the links to the host and to other devices.
package measure

import (
	"slices"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
)

// Timers measure the pieces of a step, with a timer before each piece and one after the last. A
// graph cannot be timed inside, so a step is launched kernel by kernel if more is requested than
// the time before the layers, in the layers, and in sampling.
type Timers struct {
	Context *driver.Context // creates the events
	Events  []*driver.Event // existing events, reused by later steps
	marks   []*lower.Launch // the first launch after each timer but the last
	times   []time.Duration // by mark, for the last step that was read
	layers  []time.Duration // for that step
	spans   []plan.Span
	Cost    time.Duration // cost of a timer, subtracted from each span
}

// Begin discards the marks of the previous step.
func (t *Timers) Begin() { t.marks, t.times = t.marks[:0], t.times[:0] }

// timed reports whether any times of the step are requested.
func timed(b *plan.Batch) bool { return b.Timed || b.Trace || b.Spans }

// Mark records a timer before launch l of a step of b, if times are requested. A launch that moves
// no data counts toward the launch before it.
func (t *Timers) Mark(s *driver.Stream, b *plan.Batch, l *lower.Launch) error {
	if !timed(b) || l.Moves == nil {
		return nil
	}
	if err := t.record(s); err != nil {
		return err
	}
	t.marks = append(t.marks, l)
	return nil
}

// End records the last timer.
func (t *Timers) End(s *driver.Stream) error {
	if len(t.marks) == 0 {
		return nil
	}
	return t.record(s)
}

// record queues the next timer.
func (t *Timers) record(s *driver.Stream) error {
	i := len(t.marks)
	if i == len(t.Events) {
		e, err := t.Context.NewTimer()
		if err != nil {
			return err
		}
		t.Events = append(t.Events, e)
	}
	return t.Events[i].Record(s)
}

// Read reads the timers of a completed step, on the thread of c.
func (t *Timers) Read(c *driver.Context) error {
	for i := range t.marks {
		ms, err := t.Events[i+1].In(c).Since(t.Events[i])
		if err != nil {
			return err
		}
		t.times = append(t.times, time.Duration(float64(ms)*float64(time.Millisecond)))
	}
	return nil
}

// Measured stores the times that a step of b requests in its result. layers is the number of layers
// of the program.
func (t *Timers) Measured(b *plan.Batch, sh *lower.Shape, layers int, r *plan.Result) {
	t.layers, t.spans = slices.Grow(t.layers[:0], layers+1)[:layers+1], t.spans[:0]
	clear(t.layers)
	var times plan.Times
	first := true // no layer has begun
	for i, l := range t.marks {
		d := t.times[i]
		if b.Spans {
			d = max(0, d-t.Cost)
		}
		switch first = first && l.Place == 0 && !l.Sampling; {
		case l.Sampling:
			times.Choose += d
		case first:
			times.Embed += d
		}
		t.layers[l.Place] += d
		if b.Spans {
			t.spans = append(t.spans, plan.Span{Kernel: l.Kernel(sh), Where: l.Does(sh), Layer: l.Place + plan.NoLayer, Begin: times.Total, Time: d, Bytes: l.Moves(b)})
		}
		times.Total += d
	}
	if b.Trace {
		r.Layers = t.layers
	}
	if b.Timed {
		r.Times = times
	}
	if b.Spans {
		r.Spans = t.spans
	}
}
