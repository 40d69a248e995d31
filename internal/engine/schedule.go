package engine

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// schedule makes steps until the engine is closed and nothing is under way. It
// holds e.mu, except where it submits and waits.
func (e *Engine) schedule() {
	defer close(e.ended)
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		f := e.next()
		switch {
		case f != nil:
			e.idle.Store(false)
			if e.submit(f) && f.batch.Late {
				e.choose(f)
			}
		case len(e.flights) > 0:
			e.await()
		case e.closing.Load():
			e.keepCache()
			e.failure = e.shut()
			return
		case !e.idle.Swap(true):
			// Look once more: who takes in a result from now on wakes this.
		default:
			e.work.Wait()
		}
	}
}

// next is the step to submit now, or nil. When nothing is under way and nothing can
// be submitted because those who have what others lack wait for their callers, these
// give it up at once.
func (e *Engine) next() *flight {
	if e.closing.Load() || len(e.flights) == stepsAhead {
		return nil
	}
	f, lack := e.fill(patience)
	if f == nil && lack && len(e.flights) == 0 {
		f, _ = e.fill(0)
	}
	return f
}

// fill makes a step: of each sequence that has a place, in the order of the queue, a
// token that is chosen, or tokens of its prompt while the step has room for them. It
// says whether somebody lacks a place or pages. Who has waited for a caller in so
// many steps gives them up.
func (e *Engine) fill(patience int) (f *flight, lack bool) {
	lack = e.queue.admit(patience, e.giveUp)
	f = e.newFlight()
	f.number = e.steps + 1
	tokens, room := e.limits.Tokens, e.limits.Rows
	if !e.program.Whole { // beside what the others choose
		tokens, room = e.pace.tokens(tokens-(e.limits.Seqs-1), e.queue.active), room-e.limits.Seqs
	}
	lacks, skipped := e.addAll(f, e.setQuotas(tokens), room, patience)
	if len(f.parts) == 0 && skipped { // those with a quota cannot run
		for _, s := range e.queue.active {
			s.quota = 0
		}
		lacks, _ = e.addAll(f, tokens, room, patience)
	}
	lack = lack || lacks
	if len(f.parts) == 0 {
		e.keep(f)
		return nil, lack
	}
	return f, lack
}

// The first in the queue gets one of ofFirst parts of a step's prompt tokens.
const ofFirst = 8

// setQuotas shares a step's prompt tokens among the sequences and returns how many are left. The
// first in the queue gets an eighth. The rest goes to the highest priority first, and among equals
// to the shortest remaining prompt, so that a long prompt does not delay ten short ones.
func (e *Engine) setQuotas(tokens int) (left int) {
	e.order = e.order[:0]
	give := func(s *sequence, most int) {
		n := min(s.rest()-s.quota, most)
		s.quota += n
		tokens -= n
	}
	for _, s := range e.queue.active {
		if s.quota = 0; s.rest() > 0 {
			if e.order = append(e.order, s); len(e.order) == 1 {
				give(s, (tokens+ofFirst-1)/ofFirst)
			}
		}
	}
	slices.SortStableFunc(e.order, func(a, b *sequence) int {
		return cmp.Or(cmp.Compare(b.run.Priority, a.run.Priority), cmp.Compare(a.rest(), b.rest()))
	})
	for _, s := range e.order {
		give(s, tokens)
	}
	clear(e.order)
	return tokens
}

// addAll adds to f the tokens that each placed sequence runs in the next step, in the order of the
// queue: prompt tokens within its quota, and spare ones that earlier sequences did not use. It
// reports whether a sequence lacks pages, and whether one was skipped because it has no quota.
func (e *Engine) addAll(f *flight, spare, room, patience int) (lack, skipped bool) {
	full := false // those who have no pages yet get none in this step
	for i, s := range e.queue.active {
		tokens := s.quota + spare
		if tokens == 0 && s.rest() > 0 {
			skipped = true
		}
		if !s.placed {
			// What it has chosen must be known, and its caller ready for more.
			if s.waitsForCaller() {
				s.missed++
				continue
			}
			// It must have a part in the step that brings its pages back, or it would not end
			// if that failed.
			if full || tokens == 0 || s.under > 0 || room == 0 && s.given < len(s.outputs()) {
				continue
			}
			switch e.place(f, i, s, patience) {
			case later:
				continue
			case lacking:
				full, lack = true, true
				continue
			}
		}
		n, outputs := s.wants(tokens, room, e.steps)
		if n == 0 {
			if s.waitsForCaller() {
				s.missed++
			}
			continue
		}
		if !e.cover(f, i, s, s.sent+n, patience) {
			lack = true
			continue
		}
		if room -= outputs; n > 1 || s.whole {
			spare = tokens - n
		}
		s.missed = 0
		e.add(f, s, n, outputs)
		s.far = max(s.far, s.sent)
	}
	return lack, skipped
}

// patience is how many steps a sequence may miss because its caller has not taken in
// what it has, before it gives up what others lack: a slow reader delays nobody.
const patience = 64

// submit starts f, and says whether it did. Where that fails, so do all answers that it is
// of.
func (e *Engine) submit(f *flight) bool {
	e.begins = f
	e.mu.Unlock()
	f.begun = time.Now()
	var step plan.Step
	err := e.setMasks(f)
	if err == nil {
		step, err = e.exe.Submit(&f.batch)
	}
	setup := e.exe.Setup()
	e.mu.Lock()
	e.begins = nil
	f.capture = setup.Capture - e.setup.Capture
	e.setup = setup
	if err != nil {
		for _, fill := range f.fills {
			e.masks.forget(fill.id)
		}
		e.letMasks(f)
		e.lost(f, err)
		e.keep(f)
		return false
	}
	f.step, f.users = step, 1
	if len(e.flights) == 0 {
		e.measures.counted = f.begun
	}
	e.flights = append(e.flights, f)
	e.steps++
	e.measures.submitted(f)
	return true
}

// lost ends all that f is of, and forgets what it was to save.
func (e *Engine) lost(f *flight, err error) {
	for i := range f.parts {
		s := f.parts[i].sequence
		s.under--
		e.fail(s, err)
	}
	for _, save := range f.saves {
		if at := &save.node.places[save.group]; at.host != none && at.saved == f.number {
			e.loseHost(save.node, save.group)
		}
	}
}

// await waits for the oldest step and hands its results out.
func (e *Engine) await() {
	f := e.flights[0]
	e.mu.Unlock()
	res, err := f.step.Wait(context.Background())
	if err == nil {
		err = f.failure
	}
	e.tell(f, res, err)
	// Callers that are ready go first: Go would let this goroutine and the worker
	// that it waits for wake each other for milliseconds. Those that have been left
	// out get more than one opportunity, as others may be ready before them.
	runtime.Gosched()
	for i := 0; i < maxYields && e.someoneIsBehind(); i++ {
		runtime.Gosched()
	}
	now := time.Now()
	e.mu.Lock()
	e.measures.busy(now)
	e.flights = slices.Delete(e.flights, 0, 1)
	e.letMasks(f)
	if err != nil {
		e.lost(f, err)
		e.done = f.number
		e.drop(f)
		return
	}
	for i := range f.parts {
		if res.Err != nil && res.Err[i] != nil {
			e.fail(f.parts[i].sequence, res.Err[i])
		}
	}
	e.done = f.number
	e.pace.took(f, now)
	for i := range f.parts {
		p := &f.parts[i]
		if p.sequence.under--; !p.sequence.over {
			e.deliver(f, p, res, now)
		}
	}
	e.drop(f)
}

// maxYields is how often a step gives way to callers who are behind. One who does not
// come in that time is slow, and delays nobody.
const maxYields = 8

// someoneIsBehind reports whether a sequence is left out of steps until its caller has
// taken in what it has.
func (e *Engine) someoneIsBehind() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.queue.active, (*sequence).waitsForCaller)
}
