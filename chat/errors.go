package chat

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/jinja"
)

// The kinds of failure. Every error of this package matches one of them with
// errors.Is, but that of a context that has ended, which matches the context's
// own error and its cause.
var (
	// ErrTemplate means that a template does not compile.
	ErrTemplate = errors.New("chat: template does not compile")
	// ErrRequest means that a request holds JSON that is malformed or of
	// the wrong kind.
	ErrRequest = errors.New("chat: malformed request")
	// ErrRender means that a template compiles but failed on a request, as
	// by adding text to a value that is missing.
	ErrRender = errors.New("chat: template failed")
	// ErrRefused means that the template refused the request by its own
	// judgement. The error is a *RefusedError.
	ErrRefused = errors.New("chat: refused by the template")
	// ErrLimit means that the template used more steps, memory, depth or
	// output than any honest one does.
	ErrLimit = errors.New("chat: template exceeds its limits")
)

// A RefusedError carries what a template said when it refused a request with
// raise_exception.
type RefusedError struct {
	Message string
	Line    int // of the template, from 1
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("chat: the template refused the request at line %d: %s", e.Line, e.Message)
}

// Unwrap makes a RefusedError match ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// renderError translates what rendering returned.
func renderError(err error) error {
	var raised *jinja.RaiseError
	var canceled *jinja.CanceledError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &raised):
		return &RefusedError{Message: raised.Message, Line: raised.Line}
	case errors.As(err, &canceled):
		return fmt.Errorf("chat: %w", err)
	case errors.Is(err, jinja.ErrLimit):
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return fmt.Errorf("%w: %w", ErrRender, err)
}
