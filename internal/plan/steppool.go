package plan

import (
	"context"
	"sync"
)

// A StepPool keeps the steps of an executable for reuse, so that a step allocates nothing. S is the
// backend's own step type. It embeds the [PooledStep] that New receives and implements [Step] by
// it. The methods are safe for concurrent use.
type StepPool[S any] struct {
	New func(PooledStep) *S // makes a step; never called concurrently

	mu   sync.Mutex
	free []*S
}

// Take returns a free step, or a new one. The step is in use until [PooledStep.Release] after
// [PooledStep.Finish], or until [PooledStep.Abandon].
func (p *StepPool[S]) Take() *S {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		s := p.free[last]
		p.free = p.free[:last]
		return s
	}
	var s *S
	s = p.New(PooledStep{done: make(chan struct{}, 1), put: func() { p.put(s) }})
	return s
}

func (p *StepPool[S]) put(s *S) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
}

// A PooledStep is the part that the steps of all backends share. It implements [Step].
type PooledStep struct {
	Batch  *Batch // of the running step; set by the backend
	Result Result // valid if Err is nil; set by the backend, which may reuse its memory
	Err    error  // why the whole step failed

	done chan struct{} // holds one value when the step is done
	put  func()        // puts the step back in the pool
}

// Finish marks the step as done and wakes up Wait.
func (s *PooledStep) Finish() { s.done <- struct{}{} }

// Abandon puts a step that will never finish back in the pool.
func (s *PooledStep) Abandon() {
	s.Batch, s.Err = nil, nil
	s.put()
}

// Wait implements [Step].
func (s *PooledStep) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-s.done:
		s.done <- struct{}{} // for the next call of Wait
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.Err != nil {
		return nil, s.Err
	}
	return &s.Result, nil
}

// Release implements [Step]. A step that still runs is not reused.
func (s *PooledStep) Release() {
	select {
	case <-s.done:
		s.Abandon()
	default:
	}
}
