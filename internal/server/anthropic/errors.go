package anthropic

import (
	"context"
	"errors"
	"net/http"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// statusOverloaded is the status of a server that is overloaded or stopping.
const statusOverloaded = 529

// errorType returns the type of an error with the status.
func errorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case statusOverloaded, http.StatusServiceUnavailable:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// restated returns h with the statuses of this dialect, which does not use 503.
func restated(h server.Handler) server.Handler {
	return func(x *server.Exchange) error { return restate(x.Work(), h(x)) }
}

// restate returns err, an error of a request with the context work, with this dialect's status.
func restate(work context.Context, err error) error {
	cause := err
	if work.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		cause = context.Cause(work)
	}
	var e *server.Error
	switch {
	case errors.Is(cause, realizar.ErrClosed):
		return &server.Error{Status: statusOverloaded, Code: "closed", Message: server.Plain(cause), RetryAfter: 1}
	case !errors.As(cause, &e) || e.Status != http.StatusServiceUnavailable:
		return err
	}
	own := *e
	own.Status = statusOverloaded
	if own.Code == "request_timeout" || own.Code == "prepare_timeout" { // a retry would time out again
		own.Status = http.StatusGatewayTimeout
	}
	return &own
}
