package server

import (
	"fmt"
	"net/http"
)

// A stream is an answer of server-sent events. Each is with the client before the next
// one is made; a client that does not read loses its stream, and nobody else waits
// for it.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool // something was sent, so that the status cannot change
	buf     []byte
	failure func(*Error) error // sends an error as the dialect has it; nil: as the event of a chat
}

// stream makes the answer to x a stream. It begins with the first event, so that an
// error before it has a status of its own.
func (s *Server) stream(x *exchange) *stream {
	x.stream = &stream{w: x.w, control: http.NewResponseController(x.w)}
	return x.stream
}

// add puts an event of data, which has no line feed, behind those to be sent.
func (t *stream) add(data []byte) { t.addNamed("", data) }

// addNamed is add for an event that has a name.
func (t *stream) addNamed(name string, data []byte) {
	if name != "" {
		t.buf = append(append(append(t.buf, "event: "...), name...), '\n')
	}
	t.buf = append(append(append(t.buf, "data: "...), data...), "\n\n"...)
}

// flush sends what was added.
func (t *stream) flush() error {
	if len(t.buf) == 0 {
		return nil
	}
	err := t.write(t.buf)
	t.buf = t.buf[:0]
	return err
}

// send sends an event of data, and those that were added before.
func (t *stream) send(data []byte) error {
	t.add(data)
	return t.flush()
}

// sendNamed is send for an event that has a name.
func (t *stream) sendNamed(name string, data []byte) error {
	t.addNamed(name, data)
	return t.flush()
}

func (t *stream) write(p []byte) error {
	if !t.begun {
		h := t.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
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

// done ends the stream as OpenAI's API does.
func (t *stream) done() error { return t.send([]byte("[DONE]")) }

// fail ends the stream with an error.
func (t *stream) fail(e *Error) error {
	if t.failure != nil {
		return t.failure(e)
	}
	return t.send(e.body())
}
