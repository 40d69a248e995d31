package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/sample"
)

// A Constraint returns the tokens that may follow an answer's tokens. The engine calls Next on a
// separate goroutine, one call at a time, while the forward pass of the last token runs.
type Constraint interface {
	// Next gets the tokens sampled since the last call; none before the first. It sets a bit in
	// mask [vocab/32, rounded up], which is zero, for each token that may follow. If force is set,
	// it may return tokens that must follow, and mask then is for the token after them. An error
	// ends the answer after the forced tokens.
	Next(chosen []int32, force bool, mask []uint32) (forced []int32, err error)
}

// A constraint holds the Constraint of one answer and its mask. The engine's mutex guards its
// variable fields.
type constraint struct {
	Constraint
	told  int      // number of tokens that were passed to Next
	mask  []uint32 // for the token after the last known one, if ready
	ready bool
	busy  bool       // Next is running
	ahead [][]uint32 // for the tokens after drafted ones, see lookAhead
	slow  int        // fast masks needed before steps wait for this one again
}

// A step waits maskPatience for a mask after the previous step is done. A sequence whose mask is
// later leaves the step. No step waits for its masks until quickMasks in a row took less than half
// of that time.
const (
	maskPatience = 5 * time.Millisecond
	quickMasks   = 16
)

// mayWait reports whether a step may wait for the next mask.
func (c *constraint) mayWait() bool { return c.ready || c.slow == 0 }

// forces reports whether forced tokens skip sampling: the caller wants no output of their rows.
func (r *Request) forces() bool { return r.Want == 0 && !r.Trace }

// ask calls Next of the constraint of s. The caller does not hold e.mu.
func (e *Engine) ask(s *sequence, chosen []int32) (forced []int32, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("engine: what constrains an answer panicked: %v", r)
		}
	}()
	clear(s.constraint.mask)
	return s.constraint.Next(chosen, len(chosen) > 0 && s.run.forces(), s.constraint.mask)
}

// constrainFirst computes the masks for the first tokens of w, whose answers are not queued yet.
func (e *Engine) constrainFirst(w *run) error {
	for _, s := range w.answers {
		if s.constraint == nil {
			continue
		}
		if _, err := e.ask(s, nil); err != nil {
			return err
		}
		e.setMask(s)
	}
	return nil
}

// setMask completes the mask for the token after the tokens of s.
func (e *Engine) setMask(s *sequence) {
	c := s.constraint
	if m := s.run.allowed(s.chosen()); m != nil {
		for i := range c.mask {
			c.mask[i] &= m.Words[i]
		}
	}
	c.told, c.ready = s.chosen(), true
}

// constrain computes the mask for the token after the tokens of s. The caller holds e.mu, which
// constrain releases while it asks.
func (e *Engine) constrain(s *sequence) {
	c := s.constraint
	begun := time.Now()
	chosen := slices.Clone(s.tokens[s.prompt()+c.told:])
	e.mu.Unlock()
	forced, err := e.ask(s, chosen)
	e.mu.Lock()
	defer func() {
		c.busy = false
		e.masked.Broadcast()
	}()
	if s.over {
		return
	}
	if c.slow > 0 && time.Since(begun) < maskPatience/2 {
		c.slow--
	}
	e.force(s, forced)
	if err != nil {
		e.fail(s, err)
	}
	if !s.over {
		e.setMask(s)
		e.lookAhead(s)
		e.work.Signal()
	}
}

// constrainSoon runs constrain on another goroutine. The caller holds e.mu.
func (e *Engine) constrainSoon(s *sequence) {
	s.constraint.busy = true
	go func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.constrain(s)
	}()
}

// force appends forced tokens to those of s, and sends them to its caller.
func (e *Engine) force(s *sequence, ids []int32) {
	got := result{Result: Result{Choice: s.choice, Chosen: true, Index: s.chosen(), Stats: s.run.stats}}
	now := time.Now()
	var err error
	for _, id := range ids {
		if m := s.run.allowed(s.chosen()); m != nil && m.Words[id/32]>>(id%32)&1 == 0 {
			err = fmt.Errorf("engine: token %d must follow and may not: %w", id, sample.ErrEmptyMask)
			break
		}
		got.Forced = append(got.Forced, id)
		got.Final, got.Stopped = s.choose(id)
		e.measures.chose(s, now)
		if got.Final {
			break
		}
	}
	if n := len(got.Forced); n > 0 {
		got.Token, got.Forced = got.Forced[n-1], got.Forced[:n-1]
		s.ahead.Add(1)
		s.run.results <- got
	}
	switch {
	case err != nil:
		e.fail(s, err)
	case got.Final:
		e.complete(s, got.Stopped)
	}
}

// A lateMask is the mask of a row, set just before the step samples.
type lateMask struct {
	part int
	row  int // of those that sample
	id   int32
}

// choose makes f, the step submitted last, sample its tokens, once the previous step is done and
// the masks are ready. The caller holds e.mu.
func (e *Engine) choose(f *flight) {
	for len(e.flights) > 1 {
		e.await()
	}
	e.awaitMasks(f)
	f.fills = f.fills[:0]
	for _, late := range f.late {
		p := &f.parts[late.part]
		s := p.sequence
		words := e.anything()
		switch {
		case s.over:
		case p.void:
		case s.constraint.busy || !s.constraint.ready: // too late
			p.void = true
			e.preempt(s)
			s.constraint.slow = quickMasks
		default:
			words = e.maskOf(s, late.row)
		}
		f.fills = append(f.fills, fill{late.id, words})
	}
	e.begins = f
	e.mu.Unlock()
	f.failure = e.setMasks(f)
	err := e.exe.Choose(f.step)
	e.mu.Lock()
	e.begins = nil
	if err != nil {
		e.flights = e.flights[:0]
		e.letMasks(f)
		e.lost(f, err)
		e.done = f.number
		e.keep(f)
	}
}

// maskLater returns the id of a mask for row number row of those that sample in the next part of f.
// The mask is not known yet.
func (e *Engine) maskLater(f *flight, row int) int32 {
	id, _ := e.masks.take(nil)
	f.masks = append(f.masks, id)
	f.late = append(f.late, lateMask{len(f.parts), row, id})
	f.batch.Late = true
	return id
}

// anything returns a mask that allows all tokens.
func (e *Engine) anything() []uint32 {
	if e.all == nil {
		e.all = slices.Repeat([]uint32{math.MaxUint32}, e.program.MaskWords())
	}
	return e.all
}

// awaitMasks waits until the masks of f are ready, at most for maskPatience.
func (e *Engine) awaitMasks(f *flight) {
	var timer *time.Timer
	expired := false
	for !expired && slices.ContainsFunc(f.late, func(m lateMask) bool {
		s := f.parts[m.part].sequence
		return s.constraint.busy && !s.over
	}) {
		if timer == nil {
			timer = time.AfterFunc(maskPatience, func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				expired = true
				e.masked.Broadcast()
			})
			defer timer.Stop()
		}
		e.masked.Wait()
	}
}
