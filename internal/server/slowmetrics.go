package server

import (
	"bytes"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// slowEvery is how often slow metrics are read. Gateways scrape much more often.
const slowEvery = time.Second

// slowMetrics are metrics that take long to read, and are read once a second at most: those of the
// process are in six files of the system.
type slowMetrics struct {
	registry *prometheus.Registry

	mu   sync.Mutex
	read time.Time
	text bytes.Buffer
}

func newSlowMetrics(all ...prometheus.Collector) *slowMetrics {
	s := &slowMetrics{registry: prometheus.NewRegistry()}
	s.registry.MustRegister(all...)
	return s
}

// append appends the metrics to b. It reads them again if a second is over.
func (s *slowMetrics) append(b []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read.IsZero() || time.Since(s.read) >= slowEvery {
		families, err := s.registry.Gather()
		if err != nil {
			return b, err
		}
		s.text.Reset()
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(&s.text, f); err != nil {
				return b, err
			}
		}
		s.read = time.Now()
	}
	return append(b, s.text.Bytes()...), nil
}
