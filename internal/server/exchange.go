package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/realizar/realizar/internal/server/jsontext"
)

// An Exchange is one request and its answer.
type Exchange struct {
	*http.Request
	Server  *Server
	w       http.ResponseWriter
	dialect Dialect
	id      string // X-Request-Id
	begun   time.Time

	work   context.Context                                   // of the model's work, once it has begun
	stream *Stream                                           // the answer, where it is one
	watch  *stopwatch                                        // nil where the request asks for no timings
	status int                                               // of the answer; 0 before it
	bytes  int64                                             // of the answer
	err    error                                             // that it ended with
	attrs  []slog.Attr                                       // for its line in the log
	traced func(route string, status int, notes []slog.Attr) // nil where nobody follows it
}

type exchangeKey struct{}

// exchangeOf is the one that ctx belongs to.
func exchangeOf(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// Note adds to the request's line in the log.
func (x *Exchange) Note(attrs ...slog.Attr) { x.attrs = append(x.attrs, attrs...) }

// newExchange begins one in the dialect d, and returns what its handlers write to. A
// client may leave a piece of its answer unread for timeout.
func newExchange(w http.ResponseWriter, r *http.Request, d Dialect, timeout time.Duration) (*Exchange, http.ResponseWriter, *http.Request) {
	x := &Exchange{dialect: d, begun: time.Now(), id: r.Header.Get("X-Request-Id")}
	if !saneID(x.id) {
		x.id = NewID("req-")
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

// NewID is a name that nothing else has.
func NewID(prefix string) string { return prefix + rand.Text() }

// promptNote is what the log calls that which was asked.
const promptNote = "body"

// notePrompt has the request's line in the log say what was asked, where that is
// wanted.
func (x *Exchange) notePrompt(body []byte) {
	if x.Server.config.LogPrompts {
		x.Note(slog.String(promptNote, string(body)))
	}
}

// JSON answers with v.
func (x *Exchange) JSON(v any) error {
	data, err := jsontext.Encode(v)
	if err != nil {
		return err
	}
	x.WriteJSON(data)
	return nil
}

// WriteJSON answers with JSON.
func (x *Exchange) WriteJSON(data []byte) { writeJSON(x.w, http.StatusOK, data) }

// writeError answers with e.
func (x *Exchange) writeError(e *Error) {
	if e.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	writeJSON(x.w, e.Status, x.dialect.Error(x.w.Header(), e))
}

// writeJSON answers with JSON. An error of writing it is the client's: it has left.
func writeJSON(w http.ResponseWriter, status int, data []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// A recorder notes what is written. A client that does not read what it is sent loses
// the rest.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	x       *Exchange
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
