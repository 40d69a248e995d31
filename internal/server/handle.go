package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
)

// handle registers an endpoint of d. Its requests need a key if the server has keys.
func (s *Server) handle(d Dialect, r Route) {
	if r.Operation != "" {
		s.operations[r.Pattern] = r.Operation
	}
	s.handleOpen(d, r.Pattern, func(x *Exchange) error { return s.keyed(x, r.Handle) })
}

// keyed checks the key of x, if the server has keys, and calls h.
func (s *Server) keyed(x *Exchange, h Handler) error {
	if err := x.settings.keys.check(x.dialect, x.Request); err != nil {
		return err
	}
	return h(x)
}

// handleOpen registers a handler whose requests need no key. Its errors have the form of d.
func (s *Server) handleOpen(d Dialect, pattern string, h Handler) {
	method, path, _ := strings.Cut(pattern, " ")
	s.mux.HandleFunc(pattern, s.run(d, h))
	if s.methods[path] == nil {
		s.mux.HandleFunc(path, s.run(d, func(x *Exchange) error { return s.wrongMethod(x, path) }))
	}
	s.methods[path] = append(s.methods[path], method)
}

func (s *Server) wrongMethod(x *Exchange, path string) error {
	allowed := strings.Join(s.methods[path], ", ")
	x.w.Header().Set("Allow", allowed)
	return &Error{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s takes %s, not %s", x.URL.Path, allowed, x.Method)}
}

// run returns h as a handler of net/http. The Exchange comes from the request's context.
func (s *Server) run(d Dialect, h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		x.Request, x.w, x.dialect, x.Server = r, w, d, s
		if err := guarded(x, h); err != nil {
			x.fail(err)
		}
	}
}

// A panicError is a panic that became an error.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded calls h and returns its error, or its panic as an error.
func guarded(x *Exchange, h Handler) (err error) {
	defer recoverTo(&err)
	return h(x)
}

// recoverTo turns a panic into an error, so that it ends one request and not the process.
func recoverTo(err *error) {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler { //nolint:errorlint // it is what was panicked with
			panic(v)
		}
		*err = &panicError{v, debug.Stack()}
	}
}

// fail answers with an error.
func (x *Exchange) fail(err error) {
	if x.gone(err) {
		x.status = statusGone
		panic(http.ErrAbortHandler) // or net/http writes an empty answer of status 200
	}
	if x.ProtoMajor == 1 && x.Context().Err() != nil {
		x.w.Header().Set("Connection", "close") // its other requests would be canceled too
	}
	x.err = err
	e := x.errorOf(err)
	e.RequestID = x.id
	switch {
	case x.stream != nil && x.stream.begun:
		_ = x.stream.fail(e) // the client may have left
	case x.status != 0:
		panic(http.ErrAbortHandler) // part of another answer is written
	default:
		x.writeError(e)
	}
}

// statusGone is the logged status of a request whose client left before the answer.
const statusGone = 499

// gone reports whether err says that the client has left. A request that the server ends, for its
// time limit say, also loses its context: a deadline for reading that falls due just after the body
// has come makes net/http cancel it.
func (x *Exchange) gone(err error) bool {
	return errors.Is(err, errUnread) ||
		x.Context().Err() != nil && errors.Is(err, context.Canceled) && errors.Is(context.Cause(x.work), context.Canceled)
}
