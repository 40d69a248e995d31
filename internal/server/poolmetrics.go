package server

import (
	"maps"
	"slices"

	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server/promtext"
)

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
	modelState  = promtext.Gauge("realizar_model_state", "1 for the state that a model is in, 0 for the others.", "model_name", "state")
	modelMemory = promtext.Gauge("realizar_model_memory_bytes", "Device memory reserved for a model.", "model_name", "device")
	memoryUsed  = promtext.Gauge("realizar_models_memory_bytes", "Device memory reserved for all models.", "device")
	memoryLimit = promtext.Gauge("realizar_models_memory_limit_bytes", "Limit of the device memory of all models.", "device")
)

// modelStates are all states.
var modelStates = []pool.State{pool.Absent, pool.Loading, pool.Ready, pool.Draining, pool.Failed}

// statusNumbers have the label model_name.
var statusNumbers = []number[pool.Status]{
	{promtext.Gauge("realizar_model_requests", "Requests that use a model.", "model_name"),
		func(s *pool.Status) float64 { return float64(s.Holds) }},
	{promtext.Gauge("realizar_model_waiting_requests", "Requests that wait for a model to be loaded.", "model_name"),
		func(s *pool.Status) float64 { return float64(s.Waiting) }},
	{promtext.Counter("realizar_model_loads_total", "Loads of a model.", "model_name"),
		func(s *pool.Status) float64 { return float64(s.Counts.Loads) }},
	{promtext.Counter("realizar_model_load_seconds_total", "Seconds spent in loading a model.", "model_name"),
		func(s *pool.Status) float64 { return s.Counts.LoadTime.Seconds() }},
	{promtext.Counter("realizar_model_load_failures_total", "Failed loads of a model.", "model_name"),
		func(s *pool.Status) float64 { return float64(s.Counts.Failures) }},
	{promtext.Counter("realizar_model_evictions_total", "Unloads of a model for another one.", "model_name"),
		func(s *pool.Status) float64 { return float64(s.Counts.Evictions) }},
}

// append appends the metrics of all models, loaded or not, and of the memory that they share.
func (p *poolState) append(b []byte) []byte {
	b = appendNumbers(b, statusNumbers, p.models, func(m *pool.Status) string { return m.Name })
	b = modelState.AppendHead(b)
	for i := range p.models {
		b = appendState(b, p.models[i].Name, p.models[i].State)
	}
	b = modelMemory.AppendHead(b)
	for i := range p.models {
		b = appendNeed(b, modelMemory, p.models[i].Need, p.models[i].Name)
	}
	b = appendNeed(memoryUsed.AppendHead(b), memoryUsed, p.used)
	return appendNeed(memoryLimit.AppendHead(b), memoryLimit, p.limits)
}

// appendState appends the state of a model, and that it is in no other.
func appendState(b []byte, model string, is pool.State) []byte {
	for _, state := range modelStates {
		v := 0.0
		if state == is {
			v = 1
		}
		b = modelState.Append(b, v, model, state.String())
	}
	return b
}

// appendNeed appends the memory of each device. labels are those before the device's.
func appendNeed(b []byte, of *promtext.Metric, need pool.Need, labels ...string) []byte {
	for _, device := range slices.Sorted(maps.Keys(need)) {
		b = of.Append(b, float64(need[device]), append(labels, device)...)
	}
	return b
}
