package engine

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// schedule makes steps until the engine is closed and no step is in flight. It holds e.mu, except
// while it submits and waits.
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
		case e.saveAlone():
		case !e.idle.Swap(true):
			// Look once more: a caller that takes a result from now on wakes the scheduler.
		default:
			e.work.Wait()
		}
	}
}

// next returns the step to submit now, or nil. If nothing is in flight and nothing can be
// submitted, because sequences with the needed places or pages wait for their callers, those lose
// them at once.
func (e *Engine) next() *flight {
	if e.closing.Load() || len(e.flights) == stepsAhead || len(e.flights) > 0 && e.expects() {
		return nil
	}
	e.awaitCallers()
	if len(e.flights) == 0 {
		e.prepare()
	}
	f, lack := e.fill(patience)
	if f == nil && lack && len(e.flights) == 0 {
		f, _ = e.fill(0)
	}
	return f
}

// fill makes a step. In the order of the queue it takes from each sequence with a place one token
// to decode, or prompt tokens while the step has room for them. It reports whether a sequence lacks
// a place or pages. Sequences that have waited for their caller for patience steps lose theirs.
func (e *Engine) fill(patience int) (f *flight, lack bool) {
	lack = e.queue.admit(patience, e.giveUp)
	f = e.newFlight()
	f.number = e.steps + 1
	tokens, room := e.limits.Tokens, e.limits.Rows
	if !e.program.Whole { // without the room for the decoding rows
		tokens, room = e.pace.room(e.mostPrompt(), e.queue.decoding()), room-e.limits.Seqs-e.drafts
	}
	e.frozen = e.frozen[:0]
	for _, s := range e.queue.active {
		if e.checks.passes && s.placed {
			e.trim(s)
		}
	}
	e.followFirst()
	lacks, skipped := e.addAll(f, e.setQuotas(tokens), room, patience, true)
	if len(f.parts) == 0 && skipped { // sequences with a quota cannot run
		for _, s := range e.queue.active {
			s.quota = 0
		}
		lacks, _ = e.addAll(f, tokens, room, patience, len(e.flights) > 0)
	}
	lack = lack || lacks
	if len(f.parts) > 0 {
		for _, s := range e.frozen {
			e.warm(f, s)
		}
		e.saveExports(f)
	}
	clear(e.frozen)
	if len(f.parts) == 0 {
		e.keep(f)
		return nil, lack
	}
	return f, lack
}

// mostPrompt returns the room of a step for prompt tokens, beside the decoding rows and drafts.
func (e *Engine) mostPrompt() int { return e.limits.Tokens - (e.limits.Seqs - 1) - e.drafts }

// The first in the queue gets one of ofFirst parts of a step's prompt tokens.
const ofFirst = 8

// setQuotas shares a step's prompt tokens among the sequences and returns how many are left. The
// first in the queue gets an eighth. The rest goes to the highest priority first, and among equals
// to the shortest remaining prompt, so that a long prompt does not delay ten short ones. The quota
// of a sequence that stays behind another goes to that one.
func (e *Engine) setQuotas(tokens int) (left int) {
	e.order = e.order[:0]
	for _, s := range e.queue.active {
		if s.quota = 0; s.rest() > 0 && !s.waitsForCaller() {
			e.order = append(e.order, s.claim())
		}
	}
	give := func(c *claim, most int) {
		n := max(0, min(c.until-c.of.sent-c.of.quota, most))
		c.of.quota += n
		tokens -= n
	}
	if len(e.order) > 0 {
		give(&e.order[0], (tokens+ofFirst-1)/ofFirst)
	}
	slices.SortStableFunc(e.order, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.rest, b.rest))
	})
	for i := range e.order {
		give(&e.order[i], tokens)
	}
	clear(e.order)
	return tokens
}

// addAll adds to f the tokens that each sequence with a place runs in the next step, in the order
// of the queue: prompt tokens within its quota, and spare ones that earlier sequences did not use.
// A sequence whose last token is known may have a draft after it. It reports whether a sequence
// lacks pages, and whether one was skipped because it has no quota or stays behind another. Sequences stay behind others only if behind is set.
func (e *Engine) addAll(f *flight, spare, room, patience int, behind bool) (lack, skipped bool) {
	full := false // no further sequence gets its first pages in this step
	b := bet{rows: e.queue.decoding()}
	for i, s := range e.queue.active {
		tokens := s.quota + spare
		if tokens == 0 && (s.rest() > 0 || !s.placed) {
			skipped = true
		}
		if !s.placed {
			// Its sampled tokens must be known, and its caller ready for more.
			if s.waitsForCaller() {
				s.missed++
				continue
			}
			if s.constraint != nil && !s.constraint.mayWait() {
				continue // it could not run in this step
			}
			// It must run in the step that restores its pages, or it would not end if that step
			// failed.
			if full || tokens == 0 || s.under > 0 || room == 0 && s.given < len(s.outputs()) {
				continue
			}
			if behind && s.staysBehind() {
				skipped = true
				continue
			}
			switch e.place(f, i, s, tokens, patience, behind) {
			case later:
				spare, skipped = tokens, true
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
		e.propose(s, n, &b)
		if !e.cover(f, i, s, s.sent+n+len(s.draft.tokens), patience) {
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

// patience is how many steps a sequence may miss because its caller has not taken its results. Then
// it loses its place and pages if others lack them: a slow reader delays no other request.
const patience = 64

// submit starts f, and reports whether it did. If that fails, all answers in f fail.
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
		e.copies.Broadcast()
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

// lost ends all answers in f with err, and forgets the pages that f was to save and restore.
func (e *Engine) lost(f *flight, err error) {
	e.settle(f, true)
	for i := range f.parts {
		s := f.parts[i].sequence
		s.under--
		e.fail(s, err)
	}
	e.failed(err)
	for _, save := range f.saves {
		if at := &save.node.places[save.group]; at.host != none && at.saved == f.number {
			e.loseHost(save.node, save.group)
		}
	}
}

// await waits for the oldest step and delivers its results.
func (e *Engine) await() {
	f := e.flights[0]
	e.mu.Unlock()
	res, err := f.step.Wait(context.Background())
	if err == nil {
		err = f.failure
	}
	if err == nil {
		e.verify(f, res)
	}
	e.tell(f, res, err)
	// Yield to callers that are ready: otherwise Go would let this goroutine and the worker that it
	// waits for wake each other for milliseconds. Yield more than once if sequences are left out of
	// steps, as other goroutines may be ready before their callers.
	runtime.Gosched()
	for i := 0; i < maxYields && e.someoneIsBehind(); i++ {
		runtime.Gosched()
	}
	now := time.Now()
	e.mu.Lock()
	defer e.copies.Broadcast()
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
		if p := &f.parts[i]; res.Err != nil && res.Err[i] != nil && !e.retry(p) {
			e.fail(p.sequence, res.Err[i])
		}
	}
	e.done = f.number
	e.settle(f, false)
	e.pace.took(f, now, e.mostPrompt())
	for i := range f.parts {
		p := &f.parts[i]
		if p.sequence.under--; !p.sequence.over {
			e.deliver(f, p, res, now)
		}
	}
	e.drop(f)
}

// maxYields is how often the scheduler yields to callers that are behind. A caller that has not run
// by then is slow, and delays no other request.
const maxYields = 8

// someoneIsBehind reports whether a sequence is left out of steps until its caller has taken its
// results.
func (e *Engine) someoneIsBehind() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.queue.active, func(s *sequence) bool { return s.waitsForCaller() && !s.rests() })
}
