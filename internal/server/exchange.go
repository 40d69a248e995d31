package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"
)

// An exchange is one request and its answer.
type exchange struct {
	*http.Request
	w     http.ResponseWriter
	id    string // X-Request-Id
	begun time.Time

	work   context.Context                                   // of the model's work, once it has begun
	stream *stream                                           // the answer, where it is one
	watch  *stopwatch                                        // nil where the request asks for no timings
	status int                                               // of the answer; 0 before it
	bytes  int64                                             // of the answer
	err    error                                             // that it ended with
	attrs  []slog.Attr                                       // for its line in the log
	traced func(route string, status int, notes []slog.Attr) // nil where nobody follows it
}

type exchangeKey struct{}

// exchangeOf is the one that ctx belongs to.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// note adds to the request's line in the log.
func (x *exchange) note(attrs ...slog.Attr) { x.attrs = append(x.attrs, attrs...) }

// newExchange begins one, and returns what its handlers write to. A client may leave a
// piece of its answer unread for timeout.
func newExchange(w http.ResponseWriter, r *http.Request, timeout time.Duration) (*exchange, http.ResponseWriter, *http.Request) {
	x := &exchange{begun: time.Now(), id: r.Header.Get("X-Request-Id")}
	if !saneID(x.id) {
		x.id = newID("req-")
	}
	w.Header().Set("X-Request-Id", x.id)
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	x.Request, x.w = r, &recorder{w, http.NewResponseController(w), timeout, x}
	return x, x.w, r
}

// saneID reports whether a client's name for its request can be in headers and logs.
func saneID(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return 0 < len(id) && len(id) <= 128
}

// newID is a name that nothing else has.
func newID(prefix string) string { return prefix + rand.Text() }

// A recorder notes what is written. A client that does not read what it is sent loses
// the rest.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	x       *exchange
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.x.status == 0 && status >= 200 {
		r.x.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// pieceBytes are written with a time limit of their own.
const pieceBytes = 64 << 10

// Write counts the bytes.
func (r *recorder) Write(p []byte) (n int, err error) {
	if r.x.status == 0 {
		r.x.status = http.StatusOK
	}
	for err == nil && len(p) > 0 {
		_ = r.control.SetWriteDeadline(time.Now().Add(r.timeout)) // where there is none, nobody waits
		var m int
		m, err = r.ResponseWriter.Write(p[:min(pieceBytes, len(p))])
		n, p = n+m, p[m:]
	}
	r.x.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
