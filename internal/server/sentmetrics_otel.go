//go:build otel

package server

import (
	"context"
	"fmt"
	"strings"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// SendMetrics sends the metrics of GET /metrics, with the same names, to an OpenTelemetry collector
// at endpoint, http://localhost:4318 for instance, by OTLP over HTTP: once a minute, or as
// OTEL_METRIC_EXPORT_INTERVAL says. The returned function sends them a last time and ends that.
func (s *Server) SendMetrics(ctx context.Context, endpoint string) (func(context.Context) error, error) {
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(strings.TrimSuffix(endpoint, "/")+"/v1/metrics"))
	if err != nil {
		return nil, fmt.Errorf("server: metrics: %w", err)
	}
	provider := metric.NewMeterProvider(
		metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(s.metrics.registry))))),
		metric.WithResource(resource.NewSchemaless(attribute.String("service.name", "realizar"))),
	)
	return provider.Shutdown, nil
}
