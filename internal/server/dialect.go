package server

import (
	"cmp"
	"net/http"

	"github.com/realizar/realizar/internal/server/fields"
)

// A Dialect is an API that the server implements.
type Dialect interface {
	// Routes returns the endpoints.
	Routes() []Route
	// Key returns the key of a request; its error says how to send one.
	Key(r *http.Request) (string, error)
	// Error returns the body of the answer to a request that failed. It sets the headers of the
	// answer in h.
	Error(h http.Header, e *Error) []byte
}

// A Route is an endpoint of a dialect.
type Route struct {
	Pattern string // a method and a path, as in [http.ServeMux]
	Handle  Handler
	// Operation is what the model does for the request, by OpenTelemetry's names (gen_ai.operation.name):
	// chat, text_completion or embeddings; empty for other requests.
	Operation string
}

// A Handler answers a request. The server writes the error that it returns: as the answer, or as
// the last event of a stream that has begun.
type Handler func(x *Exchange) error

// routes registers all endpoints. The server's own need no key, as they are for monitoring. Their
// errors, and those of unknown addresses, have the form of the first dialect.
func (s *Server) routes() {
	first := s.config.Dialects[0]
	s.handleOpen(first, "GET /health", s.health)
	s.handleOpen(first, "GET /ready", s.ready)
	s.handleOpen(first, "GET /metrics", s.metrics.show)
	at, root := first, Handler(nil)
	for _, d := range s.config.Dialects {
		for _, r := range d.Routes() {
			if r.Pattern == rootPattern && root == nil {
				at, root = d, r.Handle
				continue
			}
			s.handle(d, r)
		}
	}
	s.handlePage(at, root)
	s.mux.HandleFunc("/", s.run(first, s.nothing))
}

// Read reads the body of a request, an object with the fields of list, into r. It logs the body if
// the server logs prompts.
func Read[R any](x *Exchange, list fields.List[R], r *R) error {
	data, err := x.text()
	if err != nil {
		return err
	}
	return read(x, list, r, data)
}

// ReadFor is like [Read] for a request whose fields name a model. It holds the model before it
// calls begin, which returns the value to read into. If begin is nil, that is the zero R.
func ReadFor[R any](x *Exchange, list fields.List[R], begin func() *R) (*R, error) {
	data, err := x.text()
	if err != nil {
		return nil, err
	}
	name := nameIn(data, list)
	if err := x.Hold(name); err != nil {
		if name == "" { // a malformed body may be the reason
			err = cmp.Or(read(x, list, new(R), data), err)
		}
		return nil, err
	}
	if begin == nil {
		begin = func() *R { return new(R) }
	}
	r := begin()
	return r, read(x, list, r, data)
}

// text reads the body of a request and checks that it is text.
func (x *Exchange) text() ([]byte, error) {
	data, err := x.readBody()
	if err != nil {
		return nil, err
	}
	done, err := x.turn()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := checkText(data); err != nil {
		return nil, err
	}
	x.notePrompt(data)
	return data, nil
}

// read waits for the request's turn and decodes data into r.
func read[R any](x *Exchange, list fields.List[R], r *R, data []byte) error {
	done, err := x.turn()
	if err != nil {
		return err
	}
	defer done()
	return decode(x, list, r, data)
}
