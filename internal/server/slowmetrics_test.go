package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// readings collect how often they were read.
type readings struct{ reads int }

var readsDesc = prometheus.NewDesc("reads", "", nil, nil)

func (c *readings) Describe(out chan<- *prometheus.Desc) { out <- readsDesc }

func (c *readings) Collect(out chan<- prometheus.Metric) {
	c.reads++
	out <- prometheus.MustNewConstMetric(readsDesc, prometheus.GaugeValue, float64(c.reads))
}

// Slow metrics are read once in a second, whatever the number of scrapes.
func TestSlowMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowMetrics(&readings{})
		for i, want := range []string{"1", "1", "1", "2", "2", "2", "3"} {
			text, err := s.append(nil)
			if err != nil || string(text) != "# HELP reads \n# TYPE reads gauge\nreads "+want+"\n" {
				t.Fatalf("scrape %d: %s (%v), want %v", i, text, err, want)
			}
			time.Sleep(400 * time.Millisecond)
		}
	})
}
