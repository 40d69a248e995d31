//go:build otel

package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

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
func (o *otelSpans) Begin(r *http.Request) (string, func(*Answered)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	_, span := o.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)))
	return span.SpanContext().TraceID().String(), func(a *Answered) {
		describeSpan(span, a)
		span.End()
	}
}

// describeSpan names a span and sets its attributes by OpenTelemetry's conventions for HTTP and for
// generative AI (github.com/open-telemetry/semantic-conventions-genai).
func describeSpan(span trace.Span, a *Answered) {
	if a.Route != "" {
		span.SetName(a.Route)
		_, path, _ := strings.Cut(a.Route, " ")
		span.SetAttributes(attribute.String("http.route", path))
	}
	if a.Operation != "" {
		span.SetAttributes(attribute.String("gen_ai.operation.name", a.Operation), attribute.String("gen_ai.provider.name", "realizar"))
		span.SetName(a.Operation)
		if a.Model != "" {
			span.SetName(a.Operation + " " + a.Model)
			span.SetAttributes(attribute.String("gen_ai.request.model", a.Model), attribute.String("gen_ai.response.model", a.Model))
		}
	}
	span.SetAttributes(attribute.Int("http.response.status_code", a.Status))
	var first time.Duration
	for _, n := range a.Notes {
		span.SetAttributes(noteOf(n))
		if n.Key == "queue" || n.Key == "prefill" {
			first += n.Value.Duration()
		}
	}
	if first > 0 {
		span.SetAttributes(attribute.Float64("gen_ai.response.time_to_first_chunk", first.Seconds()))
	}
	if a.Status >= http.StatusBadRequest {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(a.Status)))
	}
	if a.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(a.Status))
	}
}

// conventional are the names that the conventions have for log attributes.
var conventional = map[string]string{
	"prompt_tokens": "gen_ai.usage.input_tokens", "cached_tokens": "gen_ai.usage.cache_read.input_tokens", "completion_tokens": "gen_ai.usage.output_tokens",
}

// noteOf returns a log attribute as a span attribute; times are in seconds.
func noteOf(a slog.Attr) attribute.KeyValue {
	name := cmp.Or(conventional[a.Key], "realizar."+a.Key)
	switch a.Value.Kind() {
	case slog.KindInt64:
		return attribute.Int64(name, a.Value.Int64())
	case slog.KindDuration:
		return attribute.Float64(name+"_seconds", a.Value.Duration().Seconds())
	default:
		return attribute.String(name, a.Value.String())
	}
}
