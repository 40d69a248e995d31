package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// An Exchange is one request and its answer.
type Exchange struct {
	*http.Request
	Server   *Server
	hold     *pool.Hold[*Model] // the model that it is for; nil before it is known
	settings *settings          // of the server, when the request came
	conn     *connection        // nil where connections are not bounded
	working  bool               // the request has come as a whole
	w        http.ResponseWriter
	dialect  Dialect
	id       string // X-Request-Id
	begun    time.Time

	work    context.Context                                   // of what is done for the request
	end     context.CancelCauseFunc                           // ends work
	after   []func()                                          // called at the end of the request
	memory  *budget.Account                                   // that the request holds
	size    int                                               // of the body that has come
	body    *body                                             // that the client sends
	answers atomic.Bool                                       // has begun to be answered
	asked   bool                                              // the model was asked
	gave    atomic.Bool                                       // way to others, so that nothing more is read or written
	stream  *Stream                                           // the answer, where it is one
	watch   *stopwatch                                        // nil where the request asks for no timings
	status  int                                               // of the answer; 0 before it
	bytes   int64                                             // of the answer
	err     error                                             // that it ended with
	attrs   []slog.Attr                                       // for its line in the log
	traced  func(route string, status int, notes []slog.Attr) // nil where nobody follows it
}

type exchangeKey struct{}

// exchangeOf is the one that ctx belongs to.
func exchangeOf(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// Note adds to the request's line in the log.
func (x *Exchange) Note(attrs ...slog.Attr) { x.attrs = append(x.attrs, attrs...) }

// newExchange begins one in the dialect d, and returns what its handlers write to. It is
// for [Exchange.close] to end it.
func newExchange(w http.ResponseWriter, r *http.Request, d Dialect, times *Deadlines, stopped context.Context) (*Exchange, http.ResponseWriter, *http.Request) {
	x := &Exchange{dialect: d, begun: time.Now(), id: r.Header.Get("X-Request-Id")}
	if !saneID(x.id) {
		x.id = NewID("req-")
	}
	w.Header().Set("X-Request-Id", x.id)
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if r.ContentLength != 0 {
		x.body = &body{ReadCloser: r.Body}
		r.Body = x.body
	}
	x.conn = connectionOf(r)
	x.Request, x.w = r, &recorder{w, http.NewResponseController(w), times.Write, x}
	x.begin(times, stopped)
	x.retire()
	if x.body == nil {
		x.came()
	}
	return x, x.w, r
}

// came notes that all of the request has come, so that its connection does not wait.
func (x *Exchange) came() {
	if !x.working {
		x.working = true
		x.conn.work(1)
	}
}

// close ends it. Who is told to linger does so when all else is done.
func (x *Exchange) close() (linger time.Duration) {
	if x.working {
		x.conn.work(-1)
	}
	linger = x.charge()
	for _, f := range x.after {
		f()
	}
	x.memory.Close()
	return linger
}

// giveWay ends a request that waits for its client, so that others have its memory.
func (x *Exchange) giveWay() {
	x.end(budget.ErrFull)
	if !x.answers.Load() {
		x.readBy(0) // so that it is told
		return
	}
	x.gave.Store(true)
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now())
}

// Work is the context of what is done for the request: it ends when the client leaves,
// when the request has taken too long, and when the server stops.
func (x *Exchange) Work() context.Context { return x.work }

// A body is one that a client sends.
type body struct {
	io.ReadCloser
	read  int  // bytes
	ended bool // all of it was read
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += n
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
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
	if x.settings.logPrompts {
		x.Note(slog.String(promptNote, string(body)))
	}
}

// Reserve takes memory for what an answer keeps beside what the collector does, until the
// request ends.
func (x *Exchange) Reserve(bytes int) error { return x.memory.ReserveInt(bytes) }

// spillBytes are written at once of an answer that is not a stream.
const spillBytes = 64 << 10

// Spill writes b, a part of a JSON answer, where it is long, and returns what is to be
// appended to. Nothing can go wrong with the answer from then on.
func (x *Exchange) Spill(b []byte) []byte {
	if len(b) < spillBytes {
		return b
	}
	if x.status == 0 {
		x.w.Header().Set("Content-Type", jsonType)
	}
	_, _ = x.w.Write(b) // an error is the client's, which has left
	return b[:0]
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

// WriteJSON answers with JSON, or with what is left of it after [Exchange.Spill].
func (x *Exchange) WriteJSON(data []byte) {
	if x.status != 0 {
		_, _ = x.w.Write(data)
		return
	}
	writeJSON(x.w, http.StatusOK, data)
}

const jsonType = "application/json"

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
	h.Set("Content-Type", jsonType)
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

// WriteHeader notes the status. An answer does not wait for a body that nobody wants.
func (r *recorder) WriteHeader(status int) {
	if r.x.status == 0 && status >= 200 {
		r.x.status = status
		if b := r.x.body; b != nil && !b.ended {
			r.x.readBy(unreadGrace)
		}
	}
	r.ResponseWriter.WriteHeader(status)
}

// pieceBytes are written with a time limit of their own.
const pieceBytes = 64 << 10

// Write counts the bytes.
func (r *recorder) Write(p []byte) (n int, err error) {
	if r.x.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	r.x.answers.Store(true)
	r.x.memory.Send(true)
	defer r.x.memory.Send(false)
	for err == nil && len(p) > 0 {
		_ = r.control.SetWriteDeadline(time.Now().Add(r.timeout)) // where there is none, nobody waits
		if r.x.gave.Load() {
			return n, budget.ErrFull
		}
		var m int
		m, err = r.ResponseWriter.Write(p[:min(pieceBytes, len(p))])
		n, p = n+m, p[m:]
	}
	r.x.bytes += int64(n)
	return n, err
}

// FlushError sends what was written, for [http.ResponseController].
func (r *recorder) FlushError() error {
	r.x.memory.Send(true)
	defer r.x.memory.Send(false)
	err := r.control.Flush()
	if r.x.ProtoMajor == 2 && err == nil {
		// All was sent, and the time of a stream of HTTP/2 runs out even if nothing is written.
		_ = r.control.SetWriteDeadline(time.Time{})
	}
	return err
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
