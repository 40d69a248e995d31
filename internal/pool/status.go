package pool

import (
	"maps"
	"slices"
	"time"
)

// A State is the state of a model.
type State uint8

// The states.
const (
	Absent   State = iota // not loaded
	Loading               // being loaded; its memory is reserved
	Ready                 // can be held at once
	Draining              // closed when its holds are released
	Failed                // not loaded, because the last load failed
)

var stateNames = [...]string{"absent", "loading", "ready", "draining", "failed"}

// String is "absent", "loading", "ready", "draining" or "failed".
func (s State) String() string { return stateNames[s] }

// Counts count events of a model since the pool was made.
type Counts struct {
	Loads     int           // that succeeded
	Failures  int           // loads that failed
	Evictions int           // drains for another model
	LoadTime  time.Duration // of all Loads together
}

// A Status describes a model and its state.
type Status struct {
	Spec
	State   State
	Need    Need      // reserved; nil if nothing is
	Holds   int       // callers that use it
	Waiting int       // callers that wait for it
	Ready   time.Time // since when; zero if it is not ready
	Used    time.Time // last; zero: never
	Expires time.Time // when it is unloaded if it stays idle; zero: never
	Err     error     // of the last load; nil if it succeeded
	Counts  Counts
}

// Models returns the status of all models, in the order of the list. Models that [Pool.Set] removed
// follow until they are closed.
func (p *Pool[M]) Models() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Status, len(p.entries))
	for i, e := range p.entries {
		s := Status{Spec: e.Spec, State: e.state, Need: maps.Clone(e.need), Holds: e.holds, Used: e.used, Expires: e.expires, Err: e.err, Counts: e.counts}
		s.Aliases = slices.Clone(e.Aliases)
		if e.load != nil {
			s.Waiting = len(e.load.waiters)
		}
		if e.state == Ready {
			s.Ready = e.ready
		}
		all[i] = s
	}
	return all
}

// Memory returns how much of each device is reserved, and the limits.
func (p *Pool[M]) Memory() (used, limits Need) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.used), maps.Clone(p.config.Limits)
}

// An Event is a new state of a model.
type Event struct {
	Number uint64 // counts from 1
	Time   time.Time
	Model  string
	State  State
	Why    string // empty if the state says it
}

// keptEvents is how many events are kept.
const keptEvents = 256

// events holds the last events.
type events struct {
	list []Event
	last uint64
	more chan struct{} // closed by the next event
}

// Events returns the events with numbers above after, of the last 256. If the first has a number
// above after+1, older ones were dropped. more is closed by the next event.
func (p *Pool[M]) Events(after uint64) (list []Event, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.events.list {
		if p.events.list[i].Number > after {
			return slices.Clone(p.events.list[i:]), p.events.more
		}
	}
	return nil, p.events.more
}

// set gives e a new state and notes the event.
func (p *Pool[M]) set(e *entry[M], s State, why string) {
	e.state = s
	v := &p.events
	v.last++
	if len(v.list) == keptEvents {
		v.list = slices.Delete(v.list, 0, 1)
	}
	v.list = append(v.list, Event{Number: v.last, Time: time.Now(), Model: e.Name, State: s, Why: why})
	close(v.more)
	v.more = make(chan struct{})
}
