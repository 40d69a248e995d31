//go:build otel

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// A collector is sent the metrics that GET /metrics shows: the same names, labels and values.
func TestSentMetrics(t *testing.T) {
	var mu sync.Mutex
	sent := map[string]string{}
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		var request collector.ExportMetricsServiceRequest
		if err != nil || proto.Unmarshal(data, &request) != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s of %d bytes (%v)", r.URL.Path, len(data), err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range request.ResourceMetrics {
			for _, s := range r.ScopeMetrics {
				for _, m := range s.Metrics {
					addSent(sent, m)
				}
			}
		}
	}))
	defer h.Close()
	s := serve(t, server.Config{}, realizar.Options{})
	stop, err := s.server.SendMetrics(t.Context(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := s.post("/v1/completions", `{"model": "small", "prompt": "hello", "max_tokens": 3}`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	shown := map[string]string{}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(s.get("/metrics").body))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		addShown(shown, f)
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(shown) < 50 {
		t.Errorf("%d series are shown", len(shown))
	}
	for series, value := range shown {
		got, ok := sent[series]
		if changes := changesByItself(series); !ok || got != value && !changes {
			t.Errorf("%s is sent as %q (%v), shown as %q", series, got, ok, value)
		}
	}
	for series := range sent {
		if _, ok := shown[series]; !ok && !changesByItself(series) {
			t.Errorf("%s is sent and not shown", series)
		}
	}
}

// changesByItself reports whether a series changes between two readings of an idle server.
func changesByItself(series string) bool {
	for _, prefix := range []string{"go_", "process_", "realizar_http_", "realizar_connections_", "realizar_device_memory_free", "realizar_request_memory"} {
		if strings.HasPrefix(series, prefix) {
			return true
		}
	}
	return false
}

func addSent(to map[string]string, m *otlp.Metric) {
	put := func(attributes []*common.KeyValue, value any) {
		var labels []string
		for _, a := range attributes {
			labels = append(labels, a.Key+"="+a.Value.GetStringValue())
		}
		slices.Sort(labels)
		to[m.Name+fmt.Sprint(labels)] = fmt.Sprint(value)
	}
	switch data := m.Data.(type) {
	case *otlp.Metric_Gauge:
		for _, p := range data.Gauge.DataPoints {
			put(p.Attributes, p.GetAsDouble())
		}
	case *otlp.Metric_Sum:
		for _, p := range data.Sum.DataPoints {
			put(p.Attributes, p.GetAsDouble())
		}
	case *otlp.Metric_Histogram:
		for _, p := range data.Histogram.DataPoints {
			below, counts := uint64(0), []uint64{}
			for _, n := range p.BucketCounts {
				below += n
				counts = append(counts, below)
			}
			put(p.Attributes, fmt.Sprint(p.GetSum(), p.ExplicitBounds, counts))
		}
	case *otlp.Metric_Summary:
		for _, p := range data.Summary.DataPoints {
			put(p.Attributes, p.Count)
		}
	}
}

func addShown(to map[string]string, f *dto.MetricFamily) {
	for _, m := range f.Metric {
		var labels []string
		for _, l := range m.Label {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		slices.Sort(labels)
		var value any
		switch f.GetType() {
		case dto.MetricType_GAUGE:
			value = m.Gauge.GetValue()
		case dto.MetricType_COUNTER:
			value = m.Counter.GetValue()
		case dto.MetricType_HISTOGRAM:
			bounds, counts := []float64{}, []uint64{}
			for _, b := range m.Histogram.Bucket {
				if counts = append(counts, b.GetCumulativeCount()); len(counts) < len(m.Histogram.Bucket) {
					bounds = append(bounds, b.GetUpperBound())
				}
			}
			value = fmt.Sprint(m.Histogram.GetSampleSum(), bounds, counts)
		default:
			value = m.Summary.GetSampleCount()
		}
		to[f.GetName()+fmt.Sprint(labels)] = fmt.Sprint(value)
	}
}
