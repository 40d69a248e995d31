package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/realizar/realizar/internal/pool"
)

// poolMetrics collects the metrics of all models, loaded or not, and of the memory that they share.
type poolMetrics struct {
	read func() poolState
}

// A poolState is the current state of the models.
type poolState struct {
	models       []pool.Status
	used, limits pool.Need
}

// poolState returns the current state of the models of s.
func (s *Server) poolState() poolState {
	p := poolState{models: s.models.Models()}
	p.used, p.limits = s.models.Memory()
	return p
}

var (
	modelStateDesc  = describe("realizar_model_state", "1 for the state that a model is in, 0 for the others.", "state")
	modelMemoryDesc = describe("realizar_model_memory_bytes", "Device memory reserved for a model.", "device")
	memoryUsedDesc  = prometheus.NewDesc("realizar_models_memory_bytes", "Device memory reserved for all models.", []string{"device"}, nil)
	memoryLimitDesc = prometheus.NewDesc("realizar_models_memory_limit_bytes", "Limit of the device memory of all models.", []string{"device"}, nil)
)

// modelStates are all states.
var modelStates = []pool.State{pool.Absent, pool.Loading, pool.Ready, pool.Draining, pool.Failed}

// A statusNumber is a number of a model that may be loaded.
type statusNumber struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*pool.Status) float64
}

var statusNumbers = []statusNumber{
	{describe("realizar_model_requests", "Requests that use a model."), prometheus.GaugeValue, func(s *pool.Status) float64 { return float64(s.Holds) }},
	{describe("realizar_model_waiting_requests", "Requests that wait for a model to be loaded."), prometheus.GaugeValue, func(s *pool.Status) float64 { return float64(s.Waiting) }},
	{describe("realizar_model_loads_total", "Loads of a model."), prometheus.CounterValue, func(s *pool.Status) float64 { return float64(s.Counts.Loads) }},
	{describe("realizar_model_load_seconds_total", "Seconds spent in loading a model."), prometheus.CounterValue, func(s *pool.Status) float64 { return s.Counts.LoadTime.Seconds() }},
	{describe("realizar_model_load_failures_total", "Failed loads of a model."), prometheus.CounterValue, func(s *pool.Status) float64 { return float64(s.Counts.Failures) }},
	{describe("realizar_model_evictions_total", "Unloads of a model for another one."), prometheus.CounterValue, func(s *pool.Status) float64 { return float64(s.Counts.Evictions) }},
}

// Describe is for a registry.
func (c *poolMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, n := range statusNumbers {
		out <- n.desc
	}
	for _, d := range []*prometheus.Desc{modelStateDesc, modelMemoryDesc, memoryUsedDesc, memoryLimitDesc} {
		out <- d
	}
}

// Collect is called for each scrape.
func (c *poolMetrics) Collect(out chan<- prometheus.Metric) {
	p := c.read()
	for i := range p.models {
		m := &p.models[i]
		for _, n := range statusNumbers {
			out <- prometheus.MustNewConstMetric(n.desc, n.kind, n.value(m), m.Name)
		}
		for _, state := range modelStates {
			is := 0.0
			if state == m.State {
				is = 1
			}
			out <- prometheus.MustNewConstMetric(modelStateDesc, prometheus.GaugeValue, is, m.Name, state.String())
		}
		for device, n := range m.Need {
			out <- prometheus.MustNewConstMetric(modelMemoryDesc, prometheus.GaugeValue, float64(n), m.Name, device)
		}
	}
	for device, limit := range p.limits {
		out <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(p.used[device]), device)
		out <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(limit), device)
	}
}
