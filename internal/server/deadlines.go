package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// Deadlines are how long each phase of a request may take, whatever address it is for and
// however it is answered. 0: the default.
type Deadlines struct {
	Header     time.Duration // of the request, from the first byte on; 10 seconds
	Body       time.Duration // to arrive, whether anyone reads it or not; a minute
	Prepare    time.Duration // the chat template and the tokenizer; half a minute
	FirstToken time.Duration // to wait for a place and read the prompt; as long as it takes
	Write      time.Duration // for the client to read a piece of its answer; half a minute
	Idle       time.Duration // between requests of one connection; two minutes
	Request    time.Duration // all of these together but the last, and the answer; as long as it takes
}

func (d *Deadlines) complete() error {
	if min(d.Header, d.Body, d.Prepare, d.FirstToken, d.Write, d.Idle, d.Request) < 0 {
		return errors.New("server: a time is below 0")
	}
	d.Header = cmp.Or(d.Header, 10*time.Second)
	d.Body = cmp.Or(d.Body, time.Minute)
	d.Prepare = cmp.Or(d.Prepare, 30*time.Second)
	d.Write = cmp.Or(d.Write, 30*time.Second)
	d.Idle = cmp.Or(d.Idle, 2*time.Minute)
	return nil
}

// unreadGrace is how long an answer waits for the rest of a body that nobody reads, so that
// the connection of a client that has sent it serves another request.
const unreadGrace = 20 * time.Millisecond

// begin sets the deadlines of a request that has a header, and returns the context of the
// work for it: it ends with the client's, when the request has taken too long, when it
// gives way to others, and when ctx ends, as all do that the server stops.
func (x *Exchange) begin(d *Deadlines, stopped context.Context) {
	if x.ContentLength != 0 {
		x.readBy(d.Body)
	}
	x.work, x.end = context.WithCancelCause(x.Context())
	if stopped != nil {
		stop := context.AfterFunc(stopped, func() { x.end(context.Cause(stopped)) })
		x.after = append(x.after, func() { stop() })
	}
	if d.Request > 0 {
		var stop context.CancelFunc
		x.work, stop = context.WithDeadlineCause(x.work, x.begun.Add(d.Request), errTime)
		x.after = append(x.after, stop)
	}
	x.after = append(x.after, func() { x.end(nil) })
}

// readBy has reading from the client end after d.
func (x *Exchange) readBy(d time.Duration) {
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(d)) // where there is none, nobody waits
}

// phase begins a phase of d, 0 for as long as it takes, in which the request ends with
// cause, and returns what ends it.
func (x *Exchange) phase(d time.Duration, cause error) (done func()) {
	if d <= 0 {
		return func() {}
	}
	t := time.AfterFunc(d, func() { x.end(cause) })
	return func() { t.Stop() }
}
