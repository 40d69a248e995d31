//go:build otel

package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// NewSpans sends a span for each request to an OpenTelemetry collector at endpoint,
// http://localhost:4318 for instance, by OTLP over HTTP. What is not sent yet is sent
// by the function that comes with them.
func NewSpans(ctx context.Context, endpoint string) (Spans, func(context.Context) error, error) {
	if !strings.Contains(endpoint, "://") {
		return nil, nil, fmt.Errorf("server: the address of a collector is %q; want one like http://localhost:4318", endpoint)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, nil, fmt.Errorf("server: spans: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "realizar"))))
	return &otelSpans{provider.Tracer("github.com/realizar/realizar")}, provider.Shutdown, nil
}

type otelSpans struct{ tracer trace.Tracer }

// Begin is called when a request comes.
func (o *otelSpans) Begin(r *http.Request) (string, func(string, int, []slog.Attr)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	_, span := o.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)))
	return span.SpanContext().TraceID().String(), func(route string, status int, notes []slog.Attr) {
		if route != "" {
			span.SetName(route)
			_, path, _ := strings.Cut(route, " ")
			span.SetAttributes(attribute.String("http.route", path))
		}
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		for _, n := range notes {
			span.SetAttributes(noteOf(n))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}
}

// noteOf returns a log attribute as a span attribute; times are in seconds.
func noteOf(a slog.Attr) attribute.KeyValue {
	name := "realizar." + a.Key
	switch a.Value.Kind() {
	case slog.KindInt64:
		return attribute.Int64(name, a.Value.Int64())
	case slog.KindDuration:
		return attribute.Float64(name+"_seconds", a.Value.Duration().Seconds())
	default:
		return attribute.String(name, a.Value.String())
	}
}
