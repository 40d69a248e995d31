package engine

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A run is a request in the engine. The engine's mutex guards its variable fields.
type run struct {
	*Request
	answers []*sequence
	wanted  int // answers that the caller still waits for; used by the caller alone
	results chan result

	early, later *Mask // see [Request.masks]

	arrived time.Time
	stats   Stats
	placed  bool     // an answer was placed
	movable bool     // it may move to another engine of the group
	fresh   int      // see [entrant]
	next    *entrant // where it has moved to
	over    bool     // no more results are wanted
}

// A result is a message from the scheduler to a run's caller.
type result struct {
	Result
	flight *flight // that holds the memory of the slices, or nil
	err    error
	none   bool // there is no Result, and the run ends
	end    bool // the run ends with this result
	single bool // err is of one answer, and is ignored if the caller has ended that answer
}

// Run runs r to its end. It calls yield on the caller's goroutine with each result, as soon as
// there is one; a slow yield delays no other request. If yield returns false, the result's answer
// ends, or after an output of the prompt the whole request. An error of yield ends the request, and
// Run returns it. The request also ends with ctx, even while it waits.
//
// An answer's tokens depend only on the request and the answer's number.
func (e *Engine) Run(ctx context.Context, r *Request, yield func(*Result) (more bool, err error)) (Stats, error) {
	stats, _, err := e.run(ctx, r, nil, yield)
	return stats, err
}

// run is Run for a request that has arrived at a, or nil outside of a group. If the error is
// errMoved, the request has to run elsewhere: at next, if that is not nil.
func (e *Engine) run(ctx context.Context, r *Request, a *entrant, yield func(*Result) (more bool, err error)) (stats Stats, next *entrant, err error) {
	w, err := e.begin(ctx, r, a)
	if err != nil {
		if a != nil {
			a.leave()
		}
		return Stats{}, nil, err
	}
	stop := context.AfterFunc(ctx, func() { e.interrupt(w, ended(ctx, ctx.Err())) })
	err = errPanic
	defer func() { // also if yield panics
		stop()
		e.leave(w, err)
		stats, next = w.stats, w.next
	}()
	err = e.follow(ctx, w, yield)
	return stats, nil, err
}

// begin makes a run of r and puts it into the queue.
func (e *Engine) begin(ctx context.Context, r *Request, a *entrant) (*run, error) {
	if err := r.check(e.config, e.program); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, ended(ctx, err)
	}
	w := e.newRun(r)
	if err := e.constrainFirst(w); err != nil {
		return nil, err
	}
	if err := e.enter(w, a); err != nil {
		return nil, err
	}
	return w, nil
}

// errPanic is the error of a request whose yield panics.
var errPanic = errors.New("the caller panicked")

// interrupt ends w, whose caller may be waiting, with an error.
func (e *Engine) interrupt(w *run, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancel(w, err)
}

// cancel ends w with an error.
func (e *Engine) cancel(w *run, err error) {
	if !w.over {
		e.stop(w, Cancelled)
		w.results <- result{err: err}
	}
}

// newRun prepares a run of r, outside the scheduler.
func (e *Engine) newRun(r *Request) *run {
	n := r.answers()
	w := &run{Request: r, wanted: n, arrived: r.arrived, fresh: len(r.Prompt)}
	if w.arrived.IsZero() {
		w.arrived = time.Now()
	}
	// The channel has room for all results in flight or not taken yet, for one error of each
	// answer, and for the last error, so the scheduler never waits.
	most := tokensAhead
	if r.wide() {
		most = widesAhead
	}
	rows := rowsAhead
	if e.program.Whole {
		rows = len(r.Outputs) // of one step
	}
	if r.Constrain != nil {
		most *= 2 // forced tokens may follow each token
	}
	w.results = make(chan result, n*(1+min(most, max(1, r.Tokens)))+min(rows, len(r.Outputs))+1)
	vocab := int(e.program.Shapes[e.program.Logits][1])
	w.early, w.later = r.masks(vocab)
	adjust := r.adjustments(vocab)
	class := e.program.LengthClass(len(r.Prompt))
	var checks *checkpoints
	if e.checks.every > 0 {
		checks = &e.checks
	}
	for i := range n {
		s := &sequence{run: w, choice: i, class: class, whole: e.program.Whole, checks: checks, tokens: r.Prompt[:len(r.Prompt):len(r.Prompt)], tables: make([]table, len(e.program.Groups))}
		for g, group := range e.program.Groups {
			s.tables[g].group, s.tables[g].passing = group, e.checks.passing(group)
		}
		if s.adjust = adjust; r.Sampling.Penalizes() && i+1 < n {
			s.adjust = slices.Clone(adjust)
		}
		s.traced = r.Trace && r.Tokens > 0
		if r.Constrain != nil && r.Tokens > 0 {
			s.constraint = &constraint{Constraint: r.Constrain(i), mask: make([]uint32, (vocab+31)/32)}
		}
		if e.drafts > 0 && r.Tokens > 1 && r.Drafts >= 0 && !r.Trace {
			s.draft.proposer = e.config.Drafts.proposer(r, i)
		}
		w.answers = append(w.answers, s)
	}
	return w
}

// allowed returns the mask for token number n of an answer, as far as it does not depend on the
// tokens, or nil.
func (w *run) allowed(n int) *Mask {
	if n < w.MinTokens {
		return w.early
	}
	return w.later
}

// follow passes w's results to yield until there are no more.
func (e *Engine) follow(ctx context.Context, w *run, yield func(*Result) (bool, error)) error {
	var got result
	for {
		got = <-w.results
		// After the end no result is passed on.
		if e.closing.Load() {
			return ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return ended(ctx, err)
		}
		if end, err := e.pass(w, &got, yield); err != nil || end {
			return err
		}
	}
}

// pass passes a result to yield, and reports whether w ends with it.
func (e *Engine) pass(w *run, got *result, yield func(*Result) (bool, error)) (end bool, err error) {
	s := w.answers[got.Choice]
	switch {
	case got.single && s.left:
		return false, nil
	case got.single:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stop(w, EndedByError)
		return true, got.err
	case got.err != nil || got.none:
		return true, got.err
	}
	defer e.taken(w, got)
	if got.Chosen && s.left {
		return false, nil
	}
	more, err := yield(&got.Result)
	switch {
	case err != nil:
		return true, err
	case !got.Chosen:
		return !more || got.end, nil
	case more && !got.Final:
		return false, nil
	}
	if !got.Final {
		e.abandon(s)
	}
	s.left = true
	w.wanted--
	return w.wanted == 0, nil
}

// enter puts w's answers into the queue.
func (e *Engine) enter(w *run, a *entrant) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closing.Load():
		return ErrClosed
	case a != nil && e.out && !a.anyway:
		return errMoved
	case a != nil:
		e.forget(a)
		w.movable, w.fresh = true, a.fresh
	}
	for _, s := range w.answers {
		s.draft.odds = e.odds
		e.queue.enter(s)
	}
	e.work.Signal()
	return nil
}

// taken records that w's caller is done with a result.
func (e *Engine) taken(w *run, got *result) {
	w.answers[got.Choice].ahead.Add(-1)
	if got.flight != nil || w.Ends {
		e.mu.Lock()
		if got.flight != nil {
			e.drop(got.flight)
		}
		e.seen.Broadcast()
		e.mu.Unlock()
	}
	if e.idle.Load() {
		e.mu.Lock()
		e.work.Signal()
		e.mu.Unlock()
	}
}

// abandon ends an answer that its caller does not want any more. Its rows in steps in flight are
// ignored.
func (e *Engine) abandon(s *sequence) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finish(s, EndedByCaller)
}

// leave ends w, with err or because it is complete.
func (e *Engine) leave(w *run, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	how := EndedByCaller
	if err != nil {
		how = Cancelled
	}
	e.stop(w, how) // the answers that have not ended
	for _, s := range w.answers {
		for s.constraint != nil && s.constraint.busy {
			e.masked.Wait()
		}
	}
	for len(w.results) > 0 {
		if got := <-w.results; got.flight != nil {
			e.drop(got.flight)
		}
	}
}

// stop ends all answers of w.
func (e *Engine) stop(w *run, how Ending) {
	w.over = true
	for _, s := range w.answers {
		e.finish(s, how)
	}
}

// fail ends s with an error. The error ends the request too, unless the caller ends this answer
// before it gets the error. An answer that has ended cannot fail.
func (e *Engine) fail(s *sequence, err error) {
	if !s.over {
		e.finish(s, EndedByError)
		s.run.results <- result{Result: Result{Choice: s.choice}, err: err, single: true}
	}
}

// complete ends s after its last token.
func (e *Engine) complete(s *sequence, stopped bool) {
	how := EndedByLength
	if stopped {
		how = EndedByStop
	}
	e.finish(s, how)
}

// finish ends s and releases its pages. A step in flight that still writes to them runs before the
// steps of later holders.
func (e *Engine) finish(s *sequence, how Ending) {
	if s.over {
		return
	}
	s.over = true
	e.release(s)
	e.queue.leave(s)
	e.measures.ended(s, how)
	if e.group != nil {
		e.group.wake()
	}
	if s.draft.proposer != nil {
		s.draft.proposer.End(s.tokens)
	}
	e.work.Signal()
}
