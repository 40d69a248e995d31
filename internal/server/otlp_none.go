//go:build !otel

package server

import (
	"context"
	"errors"
)

var errNoOTLP = errors.New("server: this program is built without OpenTelemetry; build it with -tags otel to send spans and metrics")

// NewSpans returns an error: this program is built without OpenTelemetry.
func NewSpans(_ context.Context, _ string) (Spans, func(context.Context) error, error) {
	return nil, nil, errNoOTLP
}

// SendMetrics returns an error: this program is built without OpenTelemetry.
func (s *Server) SendMetrics(_ context.Context, _ string) (func(context.Context) error, error) {
	return nil, errNoOTLP
}
