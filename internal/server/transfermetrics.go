package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/realizar/realizar/internal/kvtransfer"
)

// transferMetrics collects the metrics of transfers of the KV cache.
type transferMetrics struct{ peer *kvtransfer.Peer }

// A transferNumber is a gauge or a counter.
type transferNumber struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*kvtransfer.Stats) float64
}

func transferCounter(name, help string, value func(*kvtransfer.Stats) float64) transferNumber {
	return transferNumber{prometheus.NewDesc("realizar_kv_transfer_"+name, help, nil, nil), prometheus.CounterValue, value}
}

var transferNumbers = []transferNumber{
	{prometheus.NewDesc("realizar_kv_transfer_offers_held", "Prompts whose pages are held for another server.", nil, nil), prometheus.GaugeValue,
		func(s *kvtransfer.Stats) float64 { return float64(s.Held) }},
	transferCounter("offers_total", "Prompts whose pages were offered to another server.", func(s *kvtransfer.Stats) float64 { return float64(s.Offers) }),
	transferCounter("offers_expired_total", "Offers that no server took in time.", func(s *kvtransfer.Stats) float64 { return float64(s.Expired) }),
	transferCounter("sent_total", "Transfers to other servers.", func(s *kvtransfer.Stats) float64 { return float64(s.Sent.Done) }),
	transferCounter("sent_failures_total", "Transfers to other servers that failed, and connections that were refused.", func(s *kvtransfer.Stats) float64 { return float64(s.Sent.Failed) }),
	transferCounter("sent_bytes_total", "Bytes of pages sent to other servers.", func(s *kvtransfer.Stats) float64 { return float64(s.Sent.Bytes) }),
	transferCounter("sent_seconds_total", "Seconds of transfers to other servers.", func(s *kvtransfer.Stats) float64 { return s.Sent.Time.Seconds() }),
	transferCounter("received_total", "Transfers from other servers.", func(s *kvtransfer.Stats) float64 { return float64(s.Received.Done) }),
	transferCounter("received_failures_total", "Transfers from other servers that failed; the prompts were computed here.", func(s *kvtransfer.Stats) float64 { return float64(s.Received.Failed) }),
	transferCounter("received_bytes_total", "Bytes of pages received from other servers.", func(s *kvtransfer.Stats) float64 { return float64(s.Received.Bytes) }),
	transferCounter("received_seconds_total", "Seconds of transfers from other servers.", func(s *kvtransfer.Stats) float64 { return s.Received.Time.Seconds() }),
}

// Describe is for a registry.
func (c *transferMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, n := range transferNumbers {
		out <- n.desc
	}
}

// Collect is called for each scrape.
func (c *transferMetrics) Collect(out chan<- prometheus.Metric) {
	var s kvtransfer.Stats
	if c.peer != nil {
		s = c.peer.Stats()
	}
	for _, n := range transferNumbers {
		out <- prometheus.MustNewConstMetric(n.desc, n.kind, n.value(&s))
	}
}
