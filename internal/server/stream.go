package server

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A Stream is an answer that is sent in pieces. Each piece is sent before the next one is made. A
// client that does not read loses its stream, and no other request waits for it.
type Stream struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	contentType string
	begun       bool // something was sent, so the status cannot change
	buf         []byte
	fail        func(*Error) error

	mu    sync.Mutex    // held while writing
	quiet *time.Timer   // until the next comment, or nil
	every time.Duration // between comments
	sent  time.Time     // when something was
}

// The types of streams.
const (
	Events = "text/event-stream; charset=utf-8" // server-sent events
	Lines  = "application/x-ndjson"             // a JSON value a line
)

// Stream makes the answer to x a stream of [Writer.Delta] calls. The answer begins with the first
// piece sent; an error before it has a status of its own. After it, fail ends the stream with an
// error.
func (x *Exchange) Stream(contentType string, fail func(*Error) error) *Stream {
	x.stream = &Stream{w: x.w, control: http.NewResponseController(x.w), contentType: contentType, fail: fail}
	return x.stream
}

// Add puts data behind what is to be sent.
func (t *Stream) Add(data []byte) { t.buf = append(t.buf, data...) }

// AddEvent adds a server-sent event. Data has no line feed. The name may be empty.
func (t *Stream) AddEvent(name string, data []byte) {
	if name != "" {
		t.buf = append(append(append(t.buf, "event: "...), name...), '\n')
	}
	t.buf = append(append(append(t.buf, "data: "...), data...), "\n\n"...)
}

// Flush sends what was added.
func (t *Stream) Flush() error {
	if len(t.buf) == 0 {
		return nil
	}
	err := t.write(t.buf)
	t.buf = t.buf[:0]
	return err
}

// SendEvent is AddEvent and Flush.
func (t *Stream) SendEvent(name string, data []byte) error {
	t.AddEvent(name, data)
	return t.Flush()
}

// comment is the line that keeps a silent stream of events alive. Clients ignore it.
const comment = ":\n\n"

// keepAlive sends a comment whenever a stream of events has sent nothing for the duration every,
// until done is called, so that no proxy takes the connection of a waiting request for dead. 0
// means never. If a comment cannot be sent, failed is called with the error. t may be nil.
func (t *Stream) keepAlive(every time.Duration, failed func(error)) (done func()) {
	if t == nil || t.contentType != Events || every <= 0 {
		return func() {}
	}
	ended := false
	t.mu.Lock()
	defer t.mu.Unlock()
	t.every = every
	t.quiet = time.AfterFunc(every, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if ended || time.Since(t.sent) < every {
			return
		}
		if err := t.writeNow([]byte(comment)); err != nil {
			ended = true
			failed(err)
		}
	})
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		ended = true
		t.quiet.Stop()
		t.quiet = nil
	}
}

// write sends p at once.
func (t *Stream) write(p []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writeNow(p)
}

// writeNow is write for a caller that holds t.mu.
func (t *Stream) writeNow(p []byte) error {
	if t.quiet != nil {
		t.sent = time.Now()
		t.quiet.Reset(t.every)
	}
	if !t.begun {
		h := t.w.Header()
		h.Set("Content-Type", t.contentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies that collect answers let this one pass
		t.begun = true
	}
	if _, err := t.w.Write(p); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	if err := t.control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}
