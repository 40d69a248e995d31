package cpu

import (
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// A layerClock adds up a step's time by layer. A nil one does nothing: it is that of
// a step whose times nobody wants.
type layerClock struct {
	times []time.Duration // see [plan.Result.Layers]
	last  time.Time       // until when the time is counted
}

// watch is the clock of a step that begins now.
func (s *step) watch() *layerClock {
	if !s.batch.Trace {
		return nil
	}
	s.clock.times = fill(s.clock.times, s.e.p.Layers()+1, 0)
	s.clock.last = time.Now()
	return &s.clock
}

// passed says that what went by since it was called last is a layer's, or
// [plan.NoLayer]'s.
func (c *layerClock) passed(layer int) {
	if c == nil {
		return
	}
	now := time.Now()
	c.times[layer-plan.NoLayer] += now.Sub(c.last)
	c.last = now
}

// layers are the times so far.
func (c *layerClock) layers() []time.Duration {
	if c == nil {
		return nil
	}
	return c.times
}
