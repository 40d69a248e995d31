// Package measure measures a GPU and the steps on it: timers between launches, what a timer
// costs, how fast memory is read and how fast the link copies.
package measure

import (
	"slices"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
)

// Timers measure the pieces of a step: one stands before each, and one after the last.
// A graph cannot be looked into, so a step of which more is wanted than what comes
// before the layers, these, and the sampling is given launch by launch.
type Timers struct {
	Context *driver.Context // that makes events
	Events  []*driver.Event // made so far; steps that come later use them again
	marks   []*lower.Launch // the first launch after each timer but the last
	times   []time.Duration // by mark, of the step that was read last
	layers  []time.Duration // of that step
	spans   []plan.Span
	Cost    time.Duration // of a timer, that no span counts
}

// Begin forgets the step before.
func (t *Timers) Begin() { t.marks, t.times = t.marks[:0], t.times[:0] }

// timed reports whether the time of any part of a step is wanted.
func timed(b *plan.Batch) bool { return b.Timed || b.Trace || b.Spans }

// Mark puts a timer before launch l of a step of b, if times are wanted. What moves nothing
// belongs to what comes before it.
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

// End puts the last timer behind what the stream was given.
func (t *Timers) End(s *driver.Stream) error {
	if len(t.marks) == 0 {
		return nil
	}
	return t.record(s)
}

// record gives the stream the next timer.
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

// Read asks the timers of a step that is over, on the thread of c.
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

// Measured puts the times that a step of b wants into its result. The program has so many
// layers.
func (t *Timers) Measured(b *plan.Batch, sh *lower.Shape, layers int, r *plan.Result) {
	t.layers, t.spans = slices.Grow(t.layers[:0], layers+1)[:layers+1], t.spans[:0]
	clear(t.layers)
	var times plan.Times
	first := true // no layer began
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
