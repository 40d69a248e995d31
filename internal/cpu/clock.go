package cpu

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// A clock takes the time of the parts of a step: its stages, the look at the residual,
// and the choice of tokens. It stands still in steps whose times nobody wants.
type clock struct {
	e      *executable
	runs   bool
	last   time.Time
	parts  int
	first  bool            // no layer began
	times  plan.Times      // so far
	layers []time.Duration // see [plan.Result.Layers]
	spans  []plan.Span
}

// start is the beginning of a step.
func (c *clock) start(e *executable) {
	b := e.batch
	if c.runs = b.Trace || b.Timed || b.Spans; c.runs {
		c.e, c.parts, c.first, c.times, c.spans = e, 0, true, plan.Times{}, c.spans[:0]
		c.layers = fill(c.layers, e.p.Layers()+1, 0)
		c.last = time.Now()
	}
}

// lap is the end of a part. One that has nothing to do in the step belongs to the next.
func (c *clock) lap() {
	part := c.parts
	if c.parts++; !c.runs {
		return
	}
	layer, idle, stages := plan.NoLayer, false, c.e.code.stages
	switch {
	case part < len(stages):
		n := stages[part].Node()
		layer, idle = n.Layer, c.e.size(n.Out) == 0
	case part > len(stages):
		idle = len(c.e.batch.Rows) == 0
	}
	if idle {
		return
	}
	now := time.Now()
	d := now.Sub(c.last)
	switch c.first = c.first && layer == plan.NoLayer && part < len(stages); {
	case c.first:
		c.times.Embed += d
	case part > len(stages):
		c.times.Choose = d
	}
	if c.e.batch.Spans {
		c.spans = append(c.spans, plan.Span{Layer: layer, Begin: c.times.Total, Time: d})
		c.e.describe(part, &c.spans[len(c.spans)-1])
		now = time.Now() // that was none of the step's work
	}
	c.layers[layer-plan.NoLayer] += d
	c.times.Total += d
	c.last = now
}

// measured puts the times that are wanted into the step's result.
func (s *step) measured() {
	c, b, r := &s.clock, s.Batch, &s.Result
	if b.Trace {
		r.Layers = c.layers
	}
	if b.Timed {
		r.Times = c.times
	}
	if b.Spans {
		r.Spans = c.spans
	}
}
