package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
)

// A handler answers a request. Its error is written for it: as the answer, or as the
// last event of a stream that has begun.
type handler func(x *exchange) error

// handle registers a handler of requests that bear a key, where keys are wanted. The
// pattern is a method and a path.
func (s *Server) handle(pattern string, h handler) {
	s.handleOpen(pattern, func(x *exchange) error {
		if err := s.config.Keys.check(x.Request); err != nil {
			return err
		}
		return h(x)
	})
}

// handleOpen registers a handler of requests of anyone.
func (s *Server) handleOpen(pattern string, h handler) {
	method, path, _ := strings.Cut(pattern, " ")
	s.mux.HandleFunc(pattern, s.run(h))
	if s.methods[path] == nil {
		s.mux.HandleFunc(path, s.run(func(x *exchange) error { return s.wrongMethod(x, path) }))
	}
	s.methods[path] = append(s.methods[path], method)
}

func (s *Server) wrongMethod(x *exchange, path string) error {
	allowed := strings.Join(s.methods[path], ", ")
	x.w.Header().Set("Allow", allowed)
	return &Error{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s takes %s, not %s", x.URL.Path, allowed, x.Method)}
}

// run is h as net/http has it. What the middleware noted of the request is with it.
func (s *Server) run(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		x.Request, x.w = r, w
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

// guarded is the handler's error, or its panic as one.
func guarded(x *exchange, h handler) (err error) {
	defer recoverTo(&err)
	return h(x)
}

// recoverTo makes a panic an error, so that it ends one request and not the process.
func recoverTo(err *error) {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler { //nolint:errorlint // it is what was panicked with
			panic(v)
		}
		*err = &panicError{v, debug.Stack()}
	}
}

// fail answers with an error.
func (x *exchange) fail(err error) {
	if x.gone(err) {
		x.status = statusGone
		return
	}
	x.err = err
	e := x.errorOf(err)
	e.RequestID = x.id
	switch {
	case x.stream != nil && x.stream.begun:
		_ = x.stream.fail(e) // the client is told as well as it can be
	case x.status != 0:
		panic(http.ErrAbortHandler) // part of another answer is written
	default:
		writeError(x.w, e)
	}
}

// statusGone is what the log has for a client that left before its answer.
const statusGone = 499

// gone reports whether err is that the client has left.
func (x *exchange) gone(err error) bool {
	return errors.Is(err, errUnread) || x.Context().Err() != nil && errors.Is(err, context.Canceled)
}
