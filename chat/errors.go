package chat

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/jinja"
)

// The kinds of failure. Every error of this package matches one of them with errors.Is, except the
// error of an ended context, which matches the context's error and its cause.
var (
	// ErrTemplate reports that a template does not compile.
	ErrTemplate = errors.New("chat: template does not compile")
	// ErrRequest reports that a request has JSON that is malformed or of the wrong kind.
	ErrRequest = errors.New("chat: malformed request")
	// ErrRender reports that a template failed on a request, for example by adding text to a
	// missing value.
	ErrRender = errors.New("chat: template failed")
	// ErrRefused reports that the template rejected the request. The error is a *RefusedError.
	ErrRefused = errors.New("chat: refused by the template")
	// ErrLimit reports that the template exceeded a limit on steps, memory, depth or output. The
	// limits are above the needs of any honest template.
	ErrLimit = errors.New("chat: template exceeds its limits")
)

// A RefusedError is the message with which a template rejected a request, by raise_exception.
type RefusedError struct {
	Message string
	Line    int // of the template, from 1
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("chat: the template refused the request at line %d: %s", e.Line, e.Message)
}

// Unwrap makes a RefusedError match ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// renderError converts an error of rendering to one of this package.
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
