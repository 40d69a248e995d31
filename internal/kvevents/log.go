package kvevents

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/realizar/realizar"
)

// An event is a change of the cache whose tokens are its own.
type event = realizar.CacheEvent

// A message is a numbered batch of events.
type message struct {
	seq     uint64
	events  []event
	payload []byte // as it is sent
}

// bounds are those of a log.
type bounds struct {
	messages, events int // kept
	pending          int // events that are in no message yet
}

var defaultBounds = bounds{messages: 10_000, events: 64 << 10, pending: 16 << 10}

// A log holds the latest messages, and what was cached before them. So whoever reads it from any
// number on learns all that is cached now. The first message says that nothing is.
type log struct {
	bounds bounds

	in      sync.Mutex // held for a moment
	pending []event
	arrived chan struct{} // has room for one

	mu       sync.Mutex // taken before in
	messages []message
	events   int             // of messages
	next     uint64          // number of the next message
	before   map[page]stored // cached before messages[0]
	serial   uint64
	changed  chan struct{} // closed when there is a new message
}

// A page identifies a page of the cache.
type page struct {
	hash uint64
	pool int
	host bool
}

// A stored is the event that stored a page.
type stored struct {
	event
	serial uint64 // in order of the events
}

func newLog(b bounds) *log {
	l := &log{bounds: b, arrived: make(chan struct{}, 1), before: map[page]stored{}, changed: make(chan struct{})}
	l.add(event{Change: realizar.CacheCleared})
	l.seal()
	return l
}

// add adds an event to the next message. It only copies the event, unless nobody has sealed
// messages for so long that it must do so.
func (l *log) add(e event) {
	if e.Change == realizar.CacheStored {
		e.Tokens = slices.Clone(e.Tokens)
	} else {
		e.Tokens = nil
	}
	l.in.Lock()
	l.pending = append(l.pending, e)
	full := len(l.pending) >= l.bounds.pending
	l.in.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	if full {
		l.seal()
	}
}

// seal makes a message of the events that were added since the last one.
func (l *log) seal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in.Lock()
	events := l.pending
	l.pending = nil
	l.in.Unlock()
	if len(events) == 0 {
		return
	}
	l.messages = append(l.messages, message{l.next, events, encode(now(), events)})
	l.next++
	l.events += len(events)
	for len(l.messages) > 1 && (len(l.messages) > l.bounds.messages || l.events > l.bounds.events) {
		l.forget(&l.messages[0])
		l.messages[0] = message{}
		l.messages = l.messages[1:]
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func now() float64 { return float64(time.Now().UnixMicro()) / 1e6 }

// forget moves the events of the oldest message into what was cached before.
func (l *log) forget(m *message) {
	l.events -= len(m.events)
	for _, e := range m.events {
		p := page{e.Hash, e.Pool, e.Host}
		switch e.Change {
		case realizar.CacheStored:
			l.serial++
			l.before[p] = stored{e, l.serial}
		case realizar.CacheRemoved:
			delete(l.before, p)
		default:
			clear(l.before)
		}
	}
}

// read returns the message with a number. If that is no longer kept, read returns a message that
// clears the cache and stores all that was cached before the oldest kept message, with the number
// before that message's. If the number is not reached yet, ok is false, and changed is closed when
// there is a new message.
func (l *log) read(seq uint64) (m message, ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.messages[0].seq
	switch {
	case seq >= l.next:
		return message{}, false, l.changed
	case seq >= oldest:
		return l.messages[seq-oldest], true, nil
	}
	events := l.cached()
	return message{oldest - 1, events, encode(now(), events)}, true, nil
}

// cached returns events that clear the cache and store what was cached before the messages, parents
// first.
func (l *log) cached() []event {
	all := make([]stored, 0, len(l.before))
	for _, s := range l.before {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(a.serial, b.serial) })
	events := append(make([]event, 0, len(all)+1), event{Change: realizar.CacheCleared})
	done := map[page]bool{}
	for i := range all {
		// From the first ancestor that is missing to the page itself.
		start := len(events)
		for e, ok := all[i], true; ok; {
			p := page{e.Hash, e.Pool, e.Host}
			if done[p] {
				break
			}
			done[p] = true
			events = append(events, e.event)
			e, ok = l.before[page{e.Parent, e.Pool, e.Host}]
		}
		slices.Reverse(events[start:])
	}
	return events
}

// end returns the number of the next message.
func (l *log) end() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}
