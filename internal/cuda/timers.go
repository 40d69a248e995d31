package cuda

import (
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

// timed reports whether the time of any part of the step is wanted.
func (s *step) timed() bool { return s.batch.Timed || s.batch.Trace || s.batch.Spans }

// begin forgets the step before.
func (t *timers) begin() { t.marks, t.times = t.marks[:0], t.times[:0] }

// mark puts a timer before launch l of a step, where times are wanted. What moves nothing
// belongs to what comes before it.
func (t *timers) mark(s *step, l *launch) error {
	if !s.timed() || l.moves == nil {
		return nil
	}
	if err := t.record(s); err != nil {
		return err
	}
	t.marks = append(t.marks, l)
	return nil
}

// end puts the last timer behind what the stream was given.
func (t *timers) end(s *step) error {
	if len(t.marks) == 0 {
		return nil
	}
	return t.record(s)
}

// record gives the stream the next timer.
func (t *timers) record(s *step) error {
	i := len(t.marks)
	if i == len(t.events) {
		e, err := t.c.NewTimer()
		if err != nil {
			return err
		}
		t.events = append(t.events, e)
	}
	return t.events[i].Record(s.e.stream)
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

// measured puts the times that are wanted into the step's result.
func (s *step) measured() {
	t, b, r := &s.timers, s.batch, &s.result
	t.layers, t.spans = fill(t.layers, s.e.p.Layers()+1, 0), t.spans[:0]
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
			t.spans = append(t.spans, plan.Span{Kernel: l.kernel(&s.sh), Where: l.does(&s.sh), Layer: l.place + plan.NoLayer, Begin: times.Total, Time: d, Bytes: l.moves(b)})
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
