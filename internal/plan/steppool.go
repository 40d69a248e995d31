package plan

import (
	"context"
	"sync"
)

// A StepPool keeps the steps of an executable for further batches, so that a step
// allocates nothing. S is the backend's own step, which embeds the [PooledStep] that New
// is given and is a [Step] by it. Its methods may be called by several goroutines at a time.
type StepPool[S any] struct {
	New func(PooledStep) *S // makes a step; one call at a time

	mu   sync.Mutex
	free []*S
}

// Take is a step that is free, or a new one. It is under way until [PooledStep.Finish] or
// [PooledStep.Abandon].
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

// A PooledStep is what the steps of all backends have. It implements [Step].
type PooledStep struct {
	Batch  *Batch // of the step under way; the backend sets it
	Result Result // valid when Err is nil; the backend fills it in, and may use its memory again
	Err    error  // why the step as a whole has failed

	done chan struct{} // holds one when the step is done
	put  func()        // makes the step free
}

// Finish says that the step is done: whoever waits is given its result.
func (s *PooledStep) Finish() { s.done <- struct{}{} }

// Abandon makes a step that nobody will finish free for another use.
func (s *PooledStep) Abandon() {
	s.Batch, s.Err = nil, nil
	s.put()
}

// Wait implements [Step].
func (s *PooledStep) Wait(ctx context.Context) (*Result, error) {
	select {
	case <-s.done:
		s.done <- struct{}{} // for the next one who waits
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.Err != nil {
		return nil, s.Err
	}
	return &s.Result, nil
}

// Release implements [Step]. A step that still runs is not used again.
func (s *PooledStep) Release() {
	select {
	case <-s.done:
		s.Abandon()
	default:
	}
}
