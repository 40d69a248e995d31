package server

import (
	"sync"

	"github.com/realizar/realizar"
)

// A record has the metrics of a model's name. They continue when the model is loaded again.
type record struct {
	mu   sync.Mutex
	past realizar.Metrics // of closed models of that name
	live *Model           // nil if no model is loaded, or it is not used yet
}

// records has a server's records by name.
type records struct {
	mu    sync.Mutex
	names map[string]*record
}

// of returns the record of a name.
func (r *records) of(name string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.names[name]
	if one == nil {
		if r.names == nil {
			r.names = map[string]*record{}
		}
		one = &record{}
		r.names[name] = one
	}
	return one
}

// follow makes the record count the metrics of m until m is closed.
func (r *record) follow(m *Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != m {
		r.live = m
		m.recorded.Store(r)
	}
}

// metrics returns the metrics of the name. If the model is not loaded, gauges are 0.
func (r *record) metrics() realizar.Metrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		none := realizar.NewMetrics()
		return plus(&none, &r.past)
	}
	m := r.live.Metrics()
	return plus(&m, &r.past)
}

// Close closes the model. Its counts stay in the record of its name.
func (m *Model) Close() error {
	if r := m.recorded.Load(); r != nil {
		r.mu.Lock()
		live := m.Metrics()
		r.past, r.live = plus(&live, &r.past), nil
		r.mu.Unlock()
	}
	return m.Model.Close()
}

// plus returns m with the counts and histograms of past added.
func plus(m, past *realizar.Metrics) realizar.Metrics {
	sum := *m
	sum.AddCounts(past)
	return sum
}
