package server

import (
	"cmp"
	"net/http"

	"github.com/realizar/realizar/internal/server/fields"
)

// A Dialect is an API that clients speak.
type Dialect interface {
	// Routes are its endpoints.
	Routes() []Route
	// Key is the key that a request bears; its error says how to send one.
	Key(r *http.Request) (string, error)
	// Error is the body that a request is answered with that fails. What the header of
	// the answer says beside it goes into h.
	Error(h http.Header, e *Error) []byte
}

// A Route is an endpoint of a dialect.
type Route struct {
	Pattern string // a method and a path, as [http.ServeMux] has them
	Handle  Handler
}

// A Handler answers a request. Its error is written for it: as the answer, or as the
// last event of a stream that has begun.
type Handler func(x *Exchange) error

// routes are all that is served. Those of the server itself want no key: they are what
// machines ask that watch over the process. Their errors, and those of addresses that
// nobody has, are in the first dialect.
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

// Read reads the body of a request, an object with the fields of list, into r. It goes
// to the log where that is wanted.
func Read[R any](x *Exchange, list fields.List[R], r *R) error {
	data, err := x.text()
	if err != nil {
		return err
	}
	return read(x, list, r, data)
}

// ReadFor is [Read] of a request for a model, which its fields name. The model is held when
// begin makes what the body is read into; nil makes the zero R.
func ReadFor[R any](x *Exchange, list fields.List[R], begin func() *R) (*R, error) {
	data, err := x.text()
	if err != nil {
		return nil, err
	}
	name := nameIn(data, list)
	if err := x.Hold(name); err != nil {
		if name == "" { // as what is wrong with the body may be why
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

// text reads the body of a request, which is text.
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

// read reads data into r when it is the request's turn.
func read[R any](x *Exchange, list fields.List[R], r *R, data []byte) error {
	done, err := x.turn()
	if err != nil {
		return err
	}
	defer done()
	return decode(x, list, r, data)
}
