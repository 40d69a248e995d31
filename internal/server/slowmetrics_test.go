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
		s := &slowMetrics{Collector: &readings{}}
		r := prometheus.NewRegistry()
		r.MustRegister(s)
		for i, want := range []float64{1, 1, 1, 2, 2, 2, 3} {
			f, err := r.Gather()
			if err != nil || len(f) != 1 || f[0].Metric[0].GetGauge().GetValue() != want {
				t.Fatalf("scrape %d: %v (%v), want %v", i, f, err, want)
			}
			time.Sleep(400 * time.Millisecond)
		}
	})
}
