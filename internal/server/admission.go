package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// admission bounds the answers that run or wait in the queue.
type admission struct {
	mu       sync.Mutex
	limit    int
	taken    int           // answers that run or wait
	draining chan struct{} // closed when no request is admitted any more
	empty    chan struct{} // closed when draining is closed and taken is 0
	speed    speed
}

// enter takes n places, or returns an error that says why it cannot. A request for many answers is
// admitted if twice as many places are free, or half of all places: the exact number might never be
// free at one time, and requests for few answers need places too.
func (a *admission) enter(n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.isDraining():
		return errDraining
	case a.taken >= a.limit, a.taken > 0 && 2*(min(n, a.limit/4)-1) >= a.limit-a.taken:
		return &Error{Status: http.StatusTooManyRequests, Code: "queue_full", RetryAfter: a.speed.retryAfter(n, a.limit, time.Now()),
			Message: fmt.Sprintf("%d answers are running or queued, and %d is the limit of the server; retry soon, or use another server", a.taken, a.limit)}
	}
	if a.taken == 0 {
		a.speed.begin(time.Now())
	}
	a.taken += n
	return nil
}

func (a *admission) leave(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken -= n
	a.speed.left(n, time.Now())
	if a.isDraining() && a.taken == 0 {
		close(a.empty)
	}
}

// retryAfter returns the number of seconds after which a request that was refused for lack of time
// or memory should come again.
func (a *admission) retryAfter() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.speed.retryAfter(1, a.limit, time.Now())
}

func (a *admission) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isDraining() {
		return
	}
	close(a.draining)
	if a.taken == 0 {
		close(a.empty)
	}
}

func (a *admission) isDraining() bool {
	select {
	case <-a.draining:
		return true
	default:
		return false
	}
}

// count returns the number of places taken and the number of all places.
func (a *admission) count() (taken, limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken, a.limit
}

// bound sets the number of places. It does not affect requests that have been admitted.
func (a *admission) bound(limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = limit
}

// Begin admits a request for the given number of answers. The places are taken until done is
// called. Begin returns the context of [Exchange.Work].
func (x *Exchange) Begin(answers int) (ctx context.Context, done func(), err error) {
	s := x.Server
	if err := s.admission.enter(answers); err != nil {
		return nil, nil, err
	}
	x.asked = true
	return x.work, func() { s.admission.leave(answers) }, nil
}
