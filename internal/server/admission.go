package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// admission bounds how many answers are under way or wait for their turn.
type admission struct {
	mu       sync.Mutex
	limit    int
	taken    int           // answers
	draining chan struct{} // closed when nobody is let in any more
	empty    chan struct{} // closed when draining and none is taken
	speed    speed
}

// enter takes places for n answers, or says why there are none. A request for many is let
// in while there are twice as many places free, or half of all, as it might never find so
// many: it leaves some to requests for few.
func (a *admission) enter(n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.isDraining():
		return errDraining
	case a.taken >= a.limit, a.taken > 0 && 2*(min(n, a.limit/4)-1) >= a.limit-a.taken:
		return &Error{Status: http.StatusTooManyRequests, Code: "queue_full", RetryAfter: a.speed.retryAfter(n, a.limit, time.Now()),
			Message: fmt.Sprintf("%d answers are under way or wait for their turn, and %d is what the server takes; ask again soon, or another server", a.taken, a.limit)}
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

// retryAfter is after how many seconds a request should come again for which there was no
// time or no memory.
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

// count is how many places are taken, of how many.
func (a *admission) count() (taken, limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken, a.limit
}

// bound sets how many places there are. Those that are taken stay so.
func (a *admission) bound(limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = limit
}

// Begin admits a request for so many answers, until done is called. The context that
// it returns is [Exchange.Work].
func (x *Exchange) Begin(answers int) (ctx context.Context, done func(), err error) {
	s := x.Server
	if err := s.admission.enter(answers); err != nil {
		return nil, nil, err
	}
	x.asked = true
	return x.work, func() { s.admission.leave(answers) }, nil
}
