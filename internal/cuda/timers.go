package cuda

import (
	"slices"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// timers measure the pieces of a step: one stands before each, and one after the last.
// A graph cannot be looked into, so a step of which more is wanted than what comes
// before the layers, these, and the sampling is given launch by launch.
type timers struct {
	c      *driver.Context // that makes events
	events []*driver.Event // made so far; steps that come later use them again
	marks  []*launch       // the first launch after each timer but the last
	times  []time.Duration // by mark, of the step that was read last
	layers []time.Duration // of that step
	spans  []plan.Span
	cost   time.Duration // of a timer, that no span counts
}

// begin forgets the step before.
func (t *timers) begin() { t.marks, t.times = t.marks[:0], t.times[:0] }

// timed reports whether the time of any part of a step is wanted.
func timed(b *plan.Batch) bool { return b.Timed || b.Trace || b.Spans }

// mark puts a timer before launch l of a step of b, if times are wanted. What moves nothing
// belongs to what comes before it.
func (t *timers) mark(s *driver.Stream, b *plan.Batch, l *launch) error {
	if !timed(b) || l.moves == nil {
		return nil
	}
	if err := t.record(s); err != nil {
		return err
	}
	t.marks = append(t.marks, l)
	return nil
}

// end puts the last timer behind what the stream was given.
func (t *timers) end(s *driver.Stream) error {
	if len(t.marks) == 0 {
		return nil
	}
	return t.record(s)
}

// record gives the stream the next timer.
func (t *timers) record(s *driver.Stream) error {
	i := len(t.marks)
	if i == len(t.events) {
		e, err := t.c.NewTimer()
		if err != nil {
			return err
		}
		t.events = append(t.events, e)
	}
	return t.events[i].Record(s)
}

// read asks the timers of a step that is over, on the thread of c.
func (t *timers) read(c *driver.Context) error {
	for i := range t.marks {
		ms, err := t.events[i+1].In(c).Since(t.events[i])
		if err != nil {
			return err
		}
		t.times = append(t.times, time.Duration(float64(ms)*float64(time.Millisecond)))
	}
	return nil
}

// measured puts the times that a step of b wants into its result. The program has so many
// layers.
func (t *timers) measured(b *plan.Batch, sh *shape, layers int, r *plan.Result) {
	t.layers, t.spans = slices.Grow(t.layers[:0], layers+1)[:layers+1], t.spans[:0]
	clear(t.layers)
	var times plan.Times
	first := true // no layer began
	for i, l := range t.marks {
		d := t.times[i]
		if b.Spans {
			d = max(0, d-t.cost)
		}
		switch first = first && l.place == 0 && !l.sampling; {
		case l.sampling:
			times.Choose += d
		case first:
			times.Embed += d
		}
		t.layers[l.place] += d
		if b.Spans {
			t.spans = append(t.spans, plan.Span{Kernel: l.kernel(sh), Where: l.does(sh), Layer: l.place + plan.NoLayer, Begin: times.Total, Time: d, Bytes: l.moves(b)})
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
