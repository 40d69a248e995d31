package server

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// slowEvery is how often slow metrics are read. Gateways scrape much more often.
const slowEvery = time.Second

// slowMetrics collects metrics that take long to read, once a second at most: those of the process
// are in six files of the system.
type slowMetrics struct {
	prometheus.Collector

	mu      sync.Mutex
	read    time.Time
	metrics []prometheus.Metric
}

// Collect is called for each scrape.
func (s *slowMetrics) Collect(out chan<- prometheus.Metric) {
	for _, m := range s.latest() {
		out <- m
	}
}

// latest returns the metrics, read again if a second is over.
func (s *slowMetrics) latest() []prometheus.Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read.IsZero() && time.Since(s.read) < slowEvery {
		return s.metrics
	}
	all := make(chan prometheus.Metric)
	go func() {
		defer close(all)
		s.Collector.Collect(all)
	}()
	s.metrics = nil
	for m := range all {
		s.metrics = append(s.metrics, m)
	}
	s.read = time.Now()
	return s.metrics
}
