package cuda

import (
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// layerTimers measure a step by layer. A graph cannot be looked into, so the step's
// launches are given one by one, with a timer wherever those of another layer begin.
type layerTimers struct {
	c      *driver.Context // that makes events
	events []*driver.Event // made so far; steps that come later use them again
	places []int           // of the launches after each timer but the last, see [launch]
	layers []time.Duration // of the step that was read last
}

// give gives the stream the launches of a step between timers.
func (t *layerTimers) give(s *driver.Stream, sh *shape, parts ...[]launch) error {
	t.places = t.places[:0]
	for _, all := range parts {
		for i := range all {
			l := &all[i]
			if l.idle(sh) {
				continue
			}
			if n := len(t.places); n == 0 || t.places[n-1] != l.place {
				if err := t.record(s, n); err != nil {
					return err
				}
				t.places = append(t.places, l.place)
			}
			if err := l.begin(s, sh); err != nil {
				return err
			}
		}
	}
	return t.record(s, len(t.places))
}

// record puts timer i behind what the stream was given.
func (t *layerTimers) record(s *driver.Stream, i int) error {
	if i == len(t.events) {
		e, err := t.c.NewTimer()
		if err != nil {
			return err
		}
		t.events = append(t.events, e)
	}
	return t.events[i].Record(s)
}

// read adds up what the timers say of a step that is over, on the thread of c.
func (t *layerTimers) read(c *driver.Context, layers int) error {
	t.layers = fill(t.layers, layers+1, 0)
	for i, place := range t.places {
		ms, err := t.events[i+1].In(c).Since(t.events[i])
		if err != nil {
			return err
		}
		t.layers[place] += time.Duration(float64(ms) * float64(time.Millisecond))
	}
	return nil
}
