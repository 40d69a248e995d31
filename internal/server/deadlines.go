package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// Deadlines bounds the duration of each phase of a request, at any address and with any kind of
// answer. 0 means the default.
type Deadlines struct {
	Header     time.Duration // to receive the header, from its first byte on; default 10 seconds
	Body       time.Duration // to receive the body, even if no handler reads it; default 1 minute
	Prepare    time.Duration // to render the chat template and tokenize; default 30 seconds
	FirstToken time.Duration // to wait in the queue and prefill the prompt; default no limit
	Write      time.Duration // for the client to read a piece of its answer; default 30 seconds
	Idle       time.Duration // between the requests of a connection; default 2 minutes
	Request    time.Duration // the whole request with its answer; default no limit
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

// unreadGrace is how long an answer waits for the rest of a body that no handler reads. A client
// that sends the rest in time keeps its connection for another request.
const unreadGrace = 20 * time.Millisecond

// begin sets the deadlines of a request whose header has arrived, and makes x.work, the context of
// the work for it. The context ends with the client's request, at the Request deadline, when the
// request gives way to others, and when stopped ends, as it does when the server stops.
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

// readBy sets the deadline for reading from the client to d from now.
func (x *Exchange) readBy(d time.Duration) {
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(d)) // an error means that the writer has no deadlines
}

// phase begins a phase that may take d; 0 means no limit. The request ends with cause if done is
// not called in time.
func (x *Exchange) phase(d time.Duration, cause error) (done func()) {
	if d <= 0 {
		return func() {}
	}
	t := time.AfterFunc(d, func() { x.end(cause) })
	return func() { t.Stop() }
}
