package cpu

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// linkPatience is how long a part of a program waits for the others before its step fails. Parts do
// the same work, so one that is so late is lost or waits for a disk that is.
const linkPatience = time.Minute

// Sums implements [mesh.Device]. Sums over columns are one running total here, and cannot be divided.
func (b *Backend) Sums(*tensor.Tensor, int, plan.Limits) bool { return false }

// Connect returns a copy of b for each of several parts of one program. The executables that they
// compile, one each, run their steps together: each step of a part waits for the same step of the
// others, so steps must be submitted to all. A part that fails, or is later than a minute, fails its
// step in all parts.
func (b *Backend) Connect(parts int) []plan.Backend {
	l := &link{at: make([]place, parts), members: make([]*executable, parts), failed: map[int64]error{}, patience: linkPatience}
	l.moved.L = &l.mu
	var all []plan.Backend
	for i := range parts {
		c := *b
		c.link, c.part = l, i
		all = append(all, &c)
	}
	return all
}

// Memories implements [mesh.Device]. Parts share the host's memory.
func (b *Backend) Memories() []plan.MemoryInfo { return []plan.MemoryInfo{b.Memory()} }

// Separate implements [mesh.Device].
func (b *Backend) Separate(parts int) []plan.Backend { return slices.Repeat([]plan.Backend{b}, parts) }

// A link connects the executables of the parts of a program.
type link struct {
	members  []*executable // by part; all are set before the first step
	patience time.Duration
	open     sync.WaitGroup // members that are not closed

	mu     sync.Mutex
	moved  sync.Cond
	at     []place         // by part: the last meeting that it has come to
	failed map[int64]error // by step; those that no part runs any longer are removed
}

// A place is a point of the run of a part.
type place struct{ step, meeting int64 }

func (p place) before(q place) bool {
	return p.step < q.step || p.step == q.step && p.meeting < q.meeting
}

// A port is a part's end of a link. Its methods are called by the goroutine that runs the part's
// steps.
type port struct {
	link    *link
	part    int
	here    place
	timer   *time.Timer
	waiting time.Time // since when the part waits; zero if it does not
	left    bool      // the part has no steps left
}

// join makes e the part of b, if b is connected.
func (b *Backend) join(e *executable) error {
	if b.link == nil {
		return nil
	}
	if b.link.members[b.part] != nil {
		return fmt.Errorf("cpu: part %d has been compiled already", b.part)
	}
	e.port = &port{link: b.link, part: b.part}
	e.port.timer = time.AfterFunc(time.Hour, e.port.late)
	e.port.timer.Stop()
	b.link.members[b.part] = e
	b.link.open.Add(1)
	return nil
}

// giveUp makes leave not wait, for a part that will run no steps.
func (p *port) giveUp() {
	if p != nil && !p.left {
		p.left = true
		p.link.open.Done()
	}
}

// leave waits until all members have no steps left, so that none uses memory that another one has
// freed.
func (p *port) leave() {
	if p != nil && !p.left {
		p.giveUp()
		p.link.open.Wait()
	}
}

// begin begins a step.
func (p *port) begin() {
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	p.here = place{step: p.here.step + 1}
	oldest := p.here.step
	for _, at := range l.at {
		oldest = min(oldest, at.step)
	}
	for step := range l.failed {
		if step < oldest {
			delete(l.failed, step)
		}
	}
}

// meet waits until all parts have come to the same point of their step.
func (p *port) meet() {
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	p.here.meeting++
	l.at[p.part] = p.here
	l.moved.Broadcast()
	for {
		if err := l.failed[p.here.step]; err != nil {
			panic(err) // becomes the step's error
		}
		if !slices.ContainsFunc(l.at, func(at place) bool { return at.before(p.here) }) {
			break
		}
		if p.waiting.IsZero() {
			p.waiting = time.Now()
			p.timer.Reset(l.patience)
		}
		l.moved.Wait()
	}
	if !p.waiting.IsZero() {
		p.waiting = time.Time{}
		p.timer.Stop()
	}
}

// late fails the step for which the part has waited too long.
func (p *port) late() {
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.waiting.IsZero() || time.Since(p.waiting) < l.patience {
		return // the wait for which the timer was set is over
	}
	i := slices.IndexFunc(l.at, func(at place) bool { return at.before(p.here) })
	if i >= 0 {
		l.fail(p.here.step, fmt.Errorf("cpu: %w: part %d of %d has not answered for %v", plan.ErrPeer, i, len(l.at), l.patience))
	}
}

// fail ends the part's step in all parts.
func (p *port) fail(err error) {
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	p.waiting = time.Time{}
	p.timer.Stop()
	l.fail(p.here.step, fmt.Errorf("cpu: %w: part %d of %d: %w", plan.ErrPeer, p.part, len(l.at), err))
}

func (l *link) fail(step int64, err error) {
	if l.failed[step] == nil {
		l.failed[step] = err
	}
	l.moved.Broadcast()
}

// exchange returns kernels that read what other parts have written: run works on size() items when
// all parts have come here, and no part goes on before all have read.
func (e *executable) exchange(size func() int, grain int, run func(lo, hi int)) []kernel {
	meeting := one(e.port.meet)
	return []kernel{meeting, {size: size, grain: grain, run: func(_, lo, hi int) { run(lo, hi) }}, meeting}
}

// others calls do with the executable and the number of each other part.
func (p *port) others(do func(part int, e *executable)) {
	for i, e := range p.link.members {
		if i != p.part {
			do(i, e)
		}
	}
}

// first replaces each error by that of the part that has found it in the earliest stage.
func (p *port) first(f *failures) {
	merged, found := slices.Clone(f.err), slices.Clone(f.found)
	p.meet()
	for _, e := range p.link.members {
		for s, at := range e.failed.found {
			if at < found[s] {
				merged[s], found[s] = e.failed.err[s], at
			}
		}
	}
	p.meet()
	copy(f.err, merged)
}
