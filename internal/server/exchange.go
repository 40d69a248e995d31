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
	hold     *pool.Hold[*Model] // the request's model; nil before it is known
	settings *settings          // the server's when the request arrived
	conn     *connection        // nil if connections are not bounded
	working  bool               // the whole request has arrived
	w        http.ResponseWriter
	dialect  Dialect
	id       string // X-Request-Id
	begun    time.Time

	work    context.Context         // of the work for the request
	end     context.CancelCauseFunc // ends work
	after   []func()                // called when the request ends
	memory  *budget.Account         // memory that the request holds
	size    int                     // bytes of the body received
	body    *body                   // nil if the request has none
	answers atomic.Bool             // part of the answer has been written
	asked   bool                    // the model has been asked
	gave    atomic.Bool             // gave way to others: nothing more is read or written
	stream  *Stream                 // nil if the answer is not a stream
	watch   *stopwatch              // nil if the request asks for no timings
	retry   int                     // seconds, see retryAfter; 0 until computed
	status  int                     // of the answer; 0 before it is written
	bytes   int64                   // bytes of the answer written
	err     error                   // the error that ended the request
	attrs   []slog.Attr             // of the request's log line
	traced  func(*Answered)         // nil if the request is not traced
}

type exchangeKey struct{}

// exchangeOf returns the Exchange in ctx.
func exchangeOf(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}

// Note adds attributes to the request's log line.
func (x *Exchange) Note(attrs ...slog.Attr) { x.attrs = append(x.attrs, attrs...) }

// newExchange starts an Exchange in the dialect d. It returns the writer and the request for its
// handlers. [Exchange.close] ends it.
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

// came notes that the whole request has arrived: its connection no longer waits for the client.
func (x *Exchange) came() {
	if !x.working {
		x.working = true
		x.conn.work(1)
	}
}

// close ends x. It returns the time to linger once all else is done.
func (x *Exchange) close() (linger time.Duration) {
	if x.working {
		x.conn.work(-1)
	}
	x.conn.answered(x.body == nil || x.body.ended)
	linger = x.charge()
	for _, f := range x.after {
		f()
	}
	x.memory.Close()
	return linger
}

// giveWay ends a request that waits for its client, so that others can use its memory.
func (x *Exchange) giveWay() {
	x.end(budget.ErrFull)
	if !x.answers.Load() {
		x.readBy(0) // reading fails, so the client gets an error
		return
	}
	x.gave.Store(true)
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now())
}

// Work returns the context of the work for the request. It ends when the client leaves, when the
// request exceeds its time limit, and when the server stops.
func (x *Exchange) Work() context.Context { return x.work }

// A body is the body of a request. It counts what is read.
type body struct {
	io.ReadCloser
	read  int  // bytes
	ended bool // read to the end
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += n
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// saneID reports whether a client's request ID is safe in headers and logs.
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

// NewID returns a unique ID with the given prefix.
func NewID(prefix string) string { return prefix + rand.Text() }

// promptNote is the log attribute for the body of a request.
const promptNote = "body"

// notePrompt adds the body to the request's log line if the server logs prompts.
func (x *Exchange) notePrompt(body []byte) {
	if x.settings.logPrompts {
		x.Note(slog.String(promptNote, string(body)))
	}
}

// Reserve reserves memory that an answer needs beyond what the collector reserves. It is freed when
// the request ends.
func (x *Exchange) Reserve(bytes int) error { return x.memory.ReserveInt(bytes) }

// spillBytes is the size in bytes of the pieces in which an answer that is not a stream is written.
const spillBytes = 64 << 10

// Spill writes b, a part of a JSON answer, if it is long, and returns the slice to append to. After
// it has written, the answer can no longer become an error.
func (x *Exchange) Spill(b []byte) []byte {
	if len(b) < spillBytes {
		return b
	}
	if x.status == 0 {
		x.w.Header().Set("Content-Type", jsonType)
	}
	_, _ = x.w.Write(b) // fails only if the client has left
	return b[:0]
}

// JSON answers with the JSON encoding of v.
func (x *Exchange) JSON(v any) error {
	data, err := jsontext.Encode(v)
	if err != nil {
		return err
	}
	x.WriteJSON(data)
	return nil
}

// WriteJSON answers with JSON data, or with the rest of it after [Exchange.Spill].
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

// writeJSON answers with JSON data. Writing fails only if the client has left.
func writeJSON(w http.ResponseWriter, status int, data []byte) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// A recorder notes the status and size of an answer. A client that does not read its answer in time
// loses the rest.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	x       *Exchange
}

// WriteHeader notes the status. The answer does not wait for the rest of a body that no handler
// reads.
func (r *recorder) WriteHeader(status int) {
	if r.x.status == 0 && status >= 200 {
		r.x.status = status
		if b := r.x.body; b != nil && !b.ended {
			r.x.readBy(unreadGrace)
		}
	}
	r.ResponseWriter.WriteHeader(status)
}

// pieceBytes is the size in bytes of the pieces that each have a write deadline of their own.
const pieceBytes = 64 << 10

// Write writes p in pieces and counts the bytes.
func (r *recorder) Write(p []byte) (n int, err error) {
	if r.x.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	r.x.answers.Store(true)
	r.x.memory.Send(true)
	defer r.x.memory.Send(false)
	for err == nil && len(p) > 0 {
		_ = r.control.SetWriteDeadline(time.Now().Add(r.timeout)) // an error means that the writer has no deadlines
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

// FlushError sends the buffered data, for [http.ResponseController].
func (r *recorder) FlushError() error {
	r.x.memory.Send(true)
	defer r.x.memory.Send(false)
	err := r.control.Flush()
	if r.x.ProtoMajor == 2 && err == nil {
		// All data is sent. Without this, the deadline of an HTTP/2 stream expires even if nothing
		// is written.
		_ = r.control.SetWriteDeadline(time.Time{})
	}
	return err
}

// Unwrap returns the underlying writer, for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
