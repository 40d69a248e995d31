package server

import (
	"context"
	"net/http"
	"time"
)

// The bounds on the requests of a connection that are refused or canceled: a burst of costAtOnce,
// then costRate a second. A connection beyond them is not cut off, as a proxy may share it among
// many clients. Instead, each refusal is delayed so that they keep to the rate; concurrent ones are
// delayed by slowest at most. If the client cancels requests beyond the bounds, the connection
// closes when its running requests have ended.
const (
	costAtOnce = 256
	costRate   = 64
	slowest    = 250 * time.Millisecond
)

// largeLater is the delay of a 429 answer if much of the request's body was read: a client that
// repeats such requests at once would keep the server busy with reading alone.
const largeLater = 100 * time.Millisecond

// A cost is the recent cost of a connection's requests. It decays at costRate a second.
type cost struct {
	n       float64
	at      time.Time // the time of n
	over    bool      // n exceeded costAtOnce once
	retired bool      // the connection is to close
}

// add charges c for a request and returns the delay of its answer.
func (c *cost) add(now time.Time) time.Duration {
	c.n = max(0, c.n-now.Sub(c.at).Seconds()*costRate) + 1
	c.at = now
	most := costAtOnce + slowest.Seconds()*costRate
	c.n = min(c.n, most)
	if c.n <= costAtOnce {
		return 0
	}
	c.over = true
	return time.Duration((c.n - costAtOnce) / costRate * float64(time.Second))
}

// charge notes that a request was refused, or canceled if takenBack is set. It returns the delay of
// the answer.
func (a *connection) charge(takenBack bool) (later time.Duration) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	before := a.cost.over
	later = a.cost.add(a.of.now())
	if a.cost.over && !before {
		a.of.costly++
	}
	if later > 0 && takenBack {
		a.cost.retired = true
	}
	return later
}

// retired reports whether the connection is to close.
func (a *connection) retired() bool {
	if a == nil {
		return false
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.cost.retired
}

// retire closes the connection of x, if it is retired, once its running requests have ended:
// HTTP/1.1 closes it after the answer, HTTP/2 sends GOAWAY.
func (x *Exchange) retire() {
	if x.conn.retired() {
		x.w.Header().Set("Connection", "close")
	}
}

// charge charges x's connection for x and returns the delay of the answer.
func (x *Exchange) charge() (later time.Duration) {
	if x.conn == nil {
		return 0
	}
	takenBack := x.Context().Err() != nil
	if takenBack || costs(x.status) {
		later = x.conn.charge(takenBack)
		x.retire()
	}
	if x.status == http.StatusTooManyRequests && x.body != nil && x.body.read >= largeBytes {
		later = max(later, largeLater)
	}
	return later
}

// costs reports whether a request that ended with status is charged to its connection.
func costs(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusUnprocessableEntity:
		return false
	}
	return 400 <= status && status < 500
}

// linger waits for d at the end of x. At that point x holds no memory and its connection counts as
// waiting, so a new connection may replace it.
func (x *Exchange) linger(d time.Duration) {
	if d > 0 {
		x.conn.of.wait(x.Context(), d)
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
