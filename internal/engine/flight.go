package engine

import (
	"context"
	"runtime"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A flight is a step that was submitted, with what it reads. Engine.flights has it
// until somebody has seen that it is done, its sequence until it needs the result
// no longer; then its memory serves another one.
type flight struct {
	batch plan.Batch
	step  plan.Step
	users int // who may still wait for the step or read its result
}

// enter waits until it is the caller's turn to submit a step and there is room for
// one; the turn must be given back. Whoever is first waits for the oldest step
// itself: a sequence whose caller takes its time over a token holds nobody up.
func (e *Engine) enter(ctx context.Context) error {
	// Goroutines that are ready take their place in the queue first: Go would let
	// this one and the worker that it waits for wake each other for milliseconds.
	runtime.Gosched()
	if err := e.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	for f := e.obstacle(); f != nil; f = e.obstacle() {
		_, _ = e.await(ctx, f)
		e.leave(f)
		if err := ctx.Err(); err != nil {
			e.turn.Release(1)
			return err
		}
	}
	return nil
}

// obstacle is the step that must be done before another one is submitted, or nil.
// The caller must leave it.
func (e *Engine) obstacle() *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flights) < stepsAhead {
		return nil
	}
	e.flights[0].users++
	return e.flights[0]
}

// tryEnter reports whether it is the caller's turn at once: nobody else waits for
// one, there is room, and before is the last step that was submitted.
func (e *Engine) tryEnter(before *flight) bool {
	runtime.Gosched()
	if !e.turn.TryAcquire(1) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flights) == stepsAhead || e.last != before {
		e.turn.Release(1)
		return false
	}
	return true
}

// await waits for f, which stays under way where ctx ends first. With f the steps
// submitted before it are done, those too that nobody waits for any longer.
func (e *Engine) await(ctx context.Context, f *flight) (*plan.Result, error) {
	res, err := f.step.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := slices.Index(e.flights, f) + 1
	for _, done := range e.flights[:n] {
		if done != f {
			_, _ = done.step.Wait(context.Background()) // at once; what is wrong with it its own sequence says
		}
		e.drop(done)
	}
	e.flights = slices.Delete(e.flights, 0, n)
	return res, err
}

// leave says that the caller needs f no longer.
func (e *Engine) leave(f *flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(f)
}

// drop is leave for who holds e.mu.
func (e *Engine) drop(f *flight) {
	if f.users--; f.users == 0 {
		f.step.Release()
		f.step = nil
		e.spare = append(e.spare, f)
	}
}

// newFlight is one whose batch has room. The caller holds e.mu.
func (e *Engine) newFlight() *flight {
	if last := len(e.spare) - 1; last >= 0 {
		f := e.spare[last]
		e.spare = e.spare[:last]
		return f
	}
	return &flight{batch: plan.Batch{Tables: make([]plan.PageTable, len(e.program.Groups))}}
}
