package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/modelfile"
)

// An Error is what a request is answered with that fails.
type Error struct {
	Status     int
	Type       string // empty: what goes with the status
	Param      string // the field that it is about, if it is about one
	Code       string // for programs
	Message    string
	RetryAfter int    // seconds
	RequestID  string // of the request
}

func (e *Error) Error() string { return e.Message }

// The errors that have nothing to say about the request.
var (
	errNotFound = &Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is nothing at this address; GET /v1/models and the documentation say what there is"}
	errDraining = &Error{Status: http.StatusServiceUnavailable, Code: "draining", RetryAfter: 1, Message: "the server is going to stop; ask another, or again when it is back"}
	errLoading  = &Error{Status: http.StatusServiceUnavailable, Code: "loading", RetryAfter: 2, Message: "the model is being loaded; ask again soon"}
	errTime     = &Error{Status: http.StatusServiceUnavailable, Code: "request_timeout", Message: "the request took longer than the server lets one take; ask for fewer tokens"}
)

// errUnread says that the client does not take its answer.
var errUnread = errors.New("the client does not read its answer")

// invalid is an error of a field.
func invalid(param, format string, a ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Param: param, Code: "invalid_value", Message: fmt.Sprintf(format, a...)}
}

// A fieldError is an error of the model about a field.
type fieldError struct {
	param string
	error
}

func (e *fieldError) Unwrap() error { return e.error }

// ofField says which field an error of the model is about.
func ofField(param string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{param, err}
}

// A kind is what errors of the model are answered with.
type kind struct {
	is     error
	status int
	code   string
}

var kinds = []kind{
	{realizar.ErrContext, http.StatusBadRequest, "context_length_exceeded"},
	{realizar.ErrRequest, http.StatusBadRequest, "invalid_value"},
	{realizar.ErrMemory, http.StatusBadRequest, "not_enough_memory"},
	{realizar.ErrClosed, http.StatusServiceUnavailable, "closed"},
	{chat.ErrRequest, http.StatusBadRequest, "invalid_value"},
	{chat.ErrRefused, http.StatusUnprocessableEntity, "refused_by_template"},
	{chat.ErrRender, http.StatusUnprocessableEntity, "template_failed"},
	{chat.ErrLimit, http.StatusUnprocessableEntity, "template_failed"},
}

// errorOf is err as it is answered.
func (x *exchange) errorOf(err error) *Error {
	var e *Error
	var field *fieldError
	var damage *modelfile.FormatError
	if x.work != nil && x.work.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = context.Cause(x.work)
	}
	if as(err, &e) {
		own := *e
		return &own
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			e := &Error{Status: k.status, Code: k.code, Message: plain(err)}
			if k.status == http.StatusServiceUnavailable {
				e.RetryAfter = errDraining.RetryAfter
			} else if as(err, &field) {
				e.Param = field.param
			}
			return e
		}
	}
	switch {
	case errors.Is(err, realizar.ErrNoTemplate):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "no_chat_template", Message: "the model has no chat template that can be used; /v1/completions takes a prompt as it is"}
	case errors.Is(err, realizar.ErrUnsuited):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "unsuited_model", Message: plain(err)}
	case errors.Is(err, realizar.ErrNoTokenizer):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "no_tokenizer", Message: "the model has no tokenizer that can be used; /v1/completions takes token ids"}
	case errors.Is(err, realizar.ErrNotFinite):
		return &Error{Status: http.StatusInternalServerError, Code: "not_finite", Message: plain(err)}
	case as(err, &damage):
		named := *damage
		named.File = filepath.Base(named.File) // clients need not know where the model lies
		return &Error{Status: http.StatusInternalServerError, Code: "damaged_file", Message: strings.TrimPrefix(named.Error(), "modelfile: ")}
	}
	return &Error{Status: http.StatusInternalServerError, Message: "the server failed; its log says more under request_id " + x.id}
}

// logged is the error that the request ended with as the log has it: without words of
// the request.
func (x *exchange) logged() string {
	e := x.errorOf(x.err)
	switch {
	case e.Status >= 500:
		return x.err.Error()
	case e.Param != "" && e.Code != "unknown_parameter": // which may have any name
		return e.Code + ": " + e.Param
	}
	return e.Code
}

// plain is the error's text without the packages that it came through.
func plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"realizar: ", "invalid request: ", "chat: ", "malformed request: "} {
		if len(text) > len(prefix) && text[:len(prefix)] == prefix {
			text = text[len(prefix):]
		}
	}
	return text
}

func as[T error](err error, target *T) bool { return errors.As(err, target) }

// kindOf is the error's type: what goes with its status where it has none.
func (e *Error) kindOf() string {
	switch {
	case e.Type != "":
		return e.Type
	case e.Status == http.StatusUnauthorized:
		return "authentication_error"
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.Status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case e.Status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// body is the error as OpenAI's API has it.
func (e *Error) body() []byte {
	type inner struct {
		Message   string  `json:"message"`
		Type      string  `json:"type"`
		Param     *string `json:"param"`
		Code      *string `json:"code"`
		RequestID string  `json:"request_id,omitempty"`
	}
	in := inner{Message: e.Message, Type: e.kindOf(), RequestID: e.RequestID}
	if e.Param != "" {
		in.Param = &e.Param
	}
	if e.Code != "" {
		in.Code = &e.Code
	}
	data, _ := json.Marshal(map[string]inner{"error": in}) // there is nothing in it that fails
	return data
}

// writeError answers with e.
func writeError(w http.ResponseWriter, e *Error) {
	h := w.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.Status, e.body())
}

// writeJSON answers with JSON. An error of writing it is the client's: it has left.
func writeJSON(w http.ResponseWriter, status int, data []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
