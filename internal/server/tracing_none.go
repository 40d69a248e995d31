//go:build !otel

package server

import (
	"context"
	"errors"
)

// NewSpans returns an error: this program is built without OpenTelemetry.
func NewSpans(_ context.Context, _ string) (Spans, func(context.Context) error, error) {
	return nil, nil, errors.New("server: this program is built without OpenTelemetry; build it with -tags otel to send spans")
}
