package server

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/modelfile"
)

// An Error is the answer to a request that failed. Errors in fields are [fields.Error].
type Error struct {
	Status     int
	Param      string // the field that the error is about, or empty
	Code       string // for programs
	Message    string
	RetryAfter int    // seconds
	RequestID  string // empty until the error is written
}

func (e *Error) Error() string { return e.Message }

// The errors that do not depend on the request.
var (
	errNotFound = &Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is nothing at this address"}
	errDraining = &Error{Status: http.StatusServiceUnavailable, Code: "draining", RetryAfter: 1, Message: "the server is shutting down; use another, or retry when it is back"}
	errLoading  = &Error{Status: http.StatusServiceUnavailable, Code: "loading", RetryAfter: 2, Message: "the model is being loaded; retry soon"}
	errTime     = &Error{Status: http.StatusServiceUnavailable, Code: "request_timeout", Message: "the request took longer than the server allows; ask for fewer tokens"}
	errPrepare  = &Error{Status: http.StatusServiceUnavailable, Code: "prepare_timeout", Message: "the grammar of the answer, the chat template and the tokenizer took longer than the server allows; send less text"}
	errFirst    = &Error{Status: http.StatusServiceUnavailable, Code: "first_token_timeout", Message: "the first token took longer than the server allows; retry soon, or use another server"}
)

// errUnread reports that the client does not read its answer.
var errUnread = errors.New("the client does not read its answer")

// A fieldError is an error of the model about a field.
type fieldError struct {
	param string
	error
}

func (e *fieldError) Unwrap() error { return e.error }

// OfField adds the name of the field to an error of the model.
func OfField(param string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{param, err}
}

// A kind maps an error of the model to an answer.
type kind struct {
	is     error
	status int
	code   string
}

var kinds = []kind{
	{realizar.ErrContext, http.StatusBadRequest, "context_length_exceeded"},
	{realizar.ErrRequest, http.StatusBadRequest, "invalid_value"},
	{realizar.ErrGrammar, http.StatusBadRequest, "grammar_too_large"},
	{realizar.ErrMemory, http.StatusBadRequest, "not_enough_memory"},
	{realizar.ErrClosed, http.StatusServiceUnavailable, "closed"},
	{chat.ErrRequest, http.StatusBadRequest, "invalid_value"},
	{chat.ErrRefused, http.StatusUnprocessableEntity, "refused_by_template"},
	{chat.ErrRender, http.StatusUnprocessableEntity, "template_failed"},
	{chat.ErrLimit, http.StatusUnprocessableEntity, "template_failed"},
}

// errorOf returns the answer to a request that failed with err.
func (x *Exchange) errorOf(err error) *Error {
	var e *Error
	var read *fields.Error
	var field *fieldError
	var damage *modelfile.FormatError
	var full *budget.Error
	if x.work != nil && x.work.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = context.Cause(x.work)
	}
	if errors.Is(err, budget.ErrFull) && x.memory.Evicted() != nil {
		err = x.memory.Evicted()
	}
	if as(err, &full) {
		if full.Alone() {
			return &Error{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: full.Error() + "; --request-memory raises the limit"}
		}
		return &Error{Status: http.StatusTooManyRequests, Code: "memory_full", RetryAfter: x.retryAfter(), Message: full.Error()}
	}
	if e := poolError(err); e != nil {
		return e
	}
	if e := storeError(err); e != nil {
		return e
	}
	if as(err, &e) {
		own := *e
		if e == errFirst {
			own.RetryAfter = x.retryAfter()
		}
		return &own
	}
	if as(err, &read) {
		return &Error{Status: http.StatusBadRequest, Param: read.Param, Code: read.Code, Message: read.Message}
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			e := &Error{Status: k.status, Code: k.code, Message: Plain(err)}
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
		return &Error{Status: http.StatusUnprocessableEntity, Code: "no_chat_template", Message: "the model has no usable chat template; /v1/completions takes a prompt without one"}
	case errors.Is(err, realizar.ErrUnsuited):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "unsuited_model", Message: Plain(err)}
	case errors.Is(err, realizar.ErrNoTokenizer):
		return &Error{Status: http.StatusUnprocessableEntity, Code: "no_tokenizer", Message: "the model has no usable tokenizer; /v1/completions takes token ids"}
	case errors.Is(err, realizar.ErrNotFinite):
		return &Error{Status: http.StatusInternalServerError, Code: "not_finite", Message: Plain(err)}
	case as(err, &damage):
		named := *damage
		named.File = filepath.Base(named.File) // clients must not learn the path of the model
		return &Error{Status: http.StatusInternalServerError, Code: "damaged_file", Message: strings.TrimPrefix(named.Error(), "modelfile: ")}
	}
	return &Error{Status: http.StatusInternalServerError, Message: "internal error; the log of the server has details under request_id " + x.id}
}

// retryAfter returns the number of seconds after which a request may find the place or memory that
// x did not.
func (x *Exchange) retryAfter() int {
	if x.retry == 0 && x.Server != nil {
		x.retry = x.Server.admission.retryAfter()
	}
	return max(1, x.retry)
}

// logged returns the error of the request for the log, without text of the request.
func (x *Exchange) logged() string {
	e := x.errorOf(x.err)
	switch {
	case e.Status >= 500:
		return x.err.Error()
	case e.Param != "" && e.Code != "unknown_parameter": // an unknown parameter may have any name
		return e.Code + ": " + e.Param
	}
	return e.Code
}

// Plain returns the text of err without the prefixes of packages.
func Plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"realizar: ", "invalid request: ", "chat: ", "malformed request: "} {
		if len(text) > len(prefix) && text[:len(prefix)] == prefix {
			text = text[len(prefix):]
		}
	}
	return text
}

func as[T error](err error, target *T) bool { return errors.As(err, target) }
