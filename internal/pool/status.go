package pool

import (
	"maps"
	"slices"
	"time"
)

// A State is how a model stands.
type State uint8

// The states.
const (
	Absent   State = iota // not there
	Loading               // has its memory, and is being loaded
	Ready                 // can be held at once
	Draining              // gives its memory back when those who hold it have released it
	Failed                // not there, as loading it failed
)

var stateNames = [...]string{"absent", "loading", "ready", "draining", "failed"}

// String is "absent", "loading", "ready", "draining" or "failed".
func (s State) String() string { return stateNames[s] }

// Counts are what happened to a model since the pool was made.
type Counts struct {
	Loads     int           // that were well
	Failures  int           // loads that were not
	Evictions int           // times that it gave way to another
	LoadTime  time.Duration // of Loads together
}

// A Status is how a model stands.
type Status struct {
	Spec
	State   State
	Need    Need      // reserved for it; nil where it is not there
	Holds   int       // those who use it
	Waiting int       // those who wait for it
	Ready   time.Time // since when; zero where it is not ready
	Used    time.Time // last; zero: never
	Expires time.Time // when it is unloaded if nobody uses it; zero: it is not
	Err     error     // of the last load; nil where that was well
	Counts  Counts
}

// Models are how all models stand, in the order of the config.
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

// Memory is how much of each device models have, and the limits.
func (p *Pool[M]) Memory() (used, limits Need) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.used), maps.Clone(p.config.Limits)
}

// An Event is a model's new state.
type Event struct {
	Number uint64 // 1 is the first; each has one more than the one before
	Time   time.Time
	Model  string
	State  State
	Why    string // empty where it goes without saying
}

// keptEvents are those that are kept.
const keptEvents = 256

// events are the last ones.
type events struct {
	list []Event
	last uint64
	more chan struct{} // closed when there is another one
}

// Events are those with a number above after, of which the last 256 are kept: a first one
// with a number above after+1 says that there were others. more is closed when there is
// another one.
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

// set notes a new state of e.
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
