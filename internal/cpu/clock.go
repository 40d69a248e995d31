package cpu

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// A clock measures the times of the parts of a step: its stages, the check of the residual, and
// sampling. It does nothing in steps without times.
type clock struct {
	e      *executable
	runs   bool
	last   time.Time
	parts  int
	first  bool            // before the first layer
	times  plan.Times      // so far
	layers []time.Duration // see [plan.Result.Layers]
	spans  []plan.Span
}

// start begins a step.
func (c *clock) start(e *executable) {
	b := e.batch
	if c.runs = b.Trace || b.Timed || b.Spans; c.runs {
		c.e, c.parts, c.first, c.times, c.spans = e, 0, true, plan.Times{}, c.spans[:0]
		c.layers = fill(c.layers, e.p.Layers()+1, 0)
		c.last = time.Now()
	}
}

// lap ends a part. The time of a part without rows in the step is added to the next one.
func (c *clock) lap() {
	part := c.parts
	if c.parts++; !c.runs {
		return
	}
	lo, hi := c.e.code.part(c.e.batch.Head)
	layer, idle, stages := plan.NoLayer, false, c.e.code.stages[lo:hi]
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
		now = time.Now() // describing the span is not part of the step
	}
	c.layers[layer-plan.NoLayer] += d
	c.times.Total += d
	c.last = now
}

// measured stores the requested times in the step's result.
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
