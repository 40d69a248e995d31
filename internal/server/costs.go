package server

import (
	"context"
	"net/http"
	"time"
)

// What requests may cost their connection that are refused, or that their client takes back:
// so many at once, and so many a second. Behind a connection there may be many clients, of a
// proxy, so that what is beyond does not cut it off. An answer that refuses comes so much
// later that there is one for each turn, or slowest later where several are under way; and
// where requests are taken back, the connection is to end when what is under way on it has.
const (
	costAtOnce = 256
	costRate   = 64
	slowest    = 250 * time.Millisecond
)

// largeLater is how much later a request is told to come again of whose body much was read:
// who sends such again at once has the server do little but read.
const largeLater = 100 * time.Millisecond

// A cost is what a connection's requests have cost of late.
type cost struct {
	n       float64
	at      time.Time // of n
	over    bool      // it was too much once
	retired bool      // the connection is to end
}

// add adds a request to c, and returns how much later its answer comes.
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

// charge notes that a request was refused, or taken back, and returns how much later it is
// to be answered.
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

// retired reports whether the connection is to end.
func (a *connection) retired() bool {
	if a == nil {
		return false
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.cost.retired
}

// retire has the connection of x end, where it is to, when what is under way on it has:
// HTTP/1.1 closes it after the answer, HTTP/2 sends GOAWAY.
func (x *Exchange) retire() {
	if x.conn.retired() {
		x.w.Header().Set("Connection", "close")
	}
}

// charge has x's connection bear what x cost, and is how much later x is to be answered.
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

// costs reports whether a request that ended with status costs its connection.
func costs(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusUnprocessableEntity:
		return false
	}
	return 400 <= status && status < 500
}

// linger waits for d at the end of x, which holds nothing any longer and whose connection
// waits for its client, so that it may go for another.
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
