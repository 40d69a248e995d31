//go:build otel

package server

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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
		metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(prometheus.GathererFunc(s.metrics.families)))))),
		metric.WithResource(resource.NewSchemaless(attribute.String("service.name", "realizar"))),
	)
	return provider.Shutdown, nil
}

// families returns the metrics that GET /metrics shows.
func (m *metrics) families() ([]*dto.MetricFamily, error) {
	text, err := m.append(nil)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	return slices.Collect(maps.Values(families)), err
}
