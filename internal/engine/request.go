package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A request is what a sequence is asked for: to run ids, and to choose tokens after
// them. The engine's mutex guards what changes.
type request struct {
	sequence *Sequence
	ids      []int32
	outputs  []Output // of ids
	next     Output   // of every token that is run after ids
	start    int      // position of the first token
	total    int      // tokens to run, of ids and after them
	first    int      // the token whose result has the index 0
	results  chan result

	sent  int    // tokens submitted
	given int    // outputs submitted
	ahead int    // steps submitted whose results the caller has not taken in
	step  uint64 // that chooses the token to go on with
	row   int32  // of that step
	token int32  // the one chosen, where that step is done
	over  bool   // nobody wants results any longer
}

// A result is what the scheduler tells a request's caller.
type result struct {
	Result
	row    bool    // there is a Result
	last   bool    // of its step for this request
	final  bool    // nothing follows
	end    int     // positions that the sequence holds after the step
	flight *flight // that the slices lie in, or nil
	err    error
}

// decoding says that the next token is one that was chosen.
func (r *request) decoding() bool { return r.sent >= len(r.ids) }

// run hands a request to the scheduler and its results to yield, on the caller's
// goroutine, so that nobody else waits for a caller.
func (s *Sequence) run(ctx context.Context, r *request, yield func(Result) (more bool, err error)) error {
	e := s.engine
	r.sequence, r.start = s, s.length
	if err := r.check(e.program); err != nil {
		return err
	}
	// What is submitted ahead has room here, and an error after it, so that the
	// scheduler never waits.
	r.results = make(chan result, min(len(r.outputs), stepsAhead*e.limits.Rows)+tokensAhead+1)
	if err := ctx.Err(); err != nil {
		return ended(ctx, err)
	}
	if err := e.enter(r); err != nil {
		return err
	}
	defer e.leave(r)
	for {
		if e.open.Err() != nil {
			return ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return ended(ctx, err)
		}
		select {
		case got := <-r.results:
			if more, err := r.pass(&got, yield); err != nil || !more || got.final {
				return err
			}
		case <-ctx.Done():
		case <-e.open.Done():
		}
	}
}

// check refuses what would make a whole step fail, and with it other sequences.
func (r *request) check(p *plan.Program) error {
	for i, id := range r.ids {
		if id < 0 || int(id) >= p.Vocab {
			return fmt.Errorf("engine: token id %d at %d is outside the vocabulary of %d", id, i, p.Vocab)
		}
	}
	last, words := int32(-1), (int(p.Shapes[p.Logits][1])+31)/32
	for i, o := range r.outputs {
		if o.Token <= last || int(o.Token) >= len(r.ids) {
			return fmt.Errorf("engine: output %d is of token %d after %d, of %d; want them in ascending order", i, o.Token, last, len(r.ids))
		}
		last = o.Token
		if o.Mask != nil && len(o.Mask) != words {
			return fmt.Errorf("engine: output %d has a mask of %d words, want %d", i, len(o.Mask), words)
		}
		if err := o.Sampling.Validate(); err != nil {
			return fmt.Errorf("engine: output %d: %w", i, err)
		}
	}
	return nil
}

// pass hands a result on and says that it was taken in.
func (r *request) pass(got *result, yield func(Result) (more bool, err error)) (more bool, err error) {
	if got.err != nil {
		return false, got.err
	}
	defer r.sequence.engine.taken(r, got)
	if !got.row {
		return true, nil
	}
	return yield(got.Result)
}

// enter puts r in the queue.
func (e *Engine) enter(r *request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.open.Err() != nil {
		return ErrClosed
	}
	e.requests = append(e.requests, r)
	e.work.Signal()
	return nil
}

// taken notes that r's caller is done with a result.
func (e *Engine) taken(r *request, got *result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// A step after it, with nothing to take in, may have been counted already.
	r.sequence.length = max(r.sequence.length, got.end)
	if got.last {
		r.ahead--
		e.work.Signal()
	}
	if got.flight != nil {
		e.drop(got.flight)
	}
}

// leave ends r: what steps under way compute for it nobody looks at.
func (e *Engine) leave(r *request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(r)
	for len(r.results) > 0 {
		if got := <-r.results; got.flight != nil {
			e.drop(got.flight)
		}
	}
}

// forget takes r out of the queue. The caller holds e.mu.
func (e *Engine) forget(r *request) {
	r.over = true
	if i := slices.Index(e.requests, r); i >= 0 {
		e.requests = slices.Delete(e.requests, i, i+1)
	}
}
