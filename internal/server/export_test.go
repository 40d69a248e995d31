package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
)

// What the tests in package server_test see beside what all do.
const PromptNote = promptNote

var (
	Scrape, Values, HistogramOf = scrape, values, histogram
	MadeUp                      = madeUp
	RecoverTo                   = recoverTo
)

// NewMetrics are those of a server with one model.
func NewMetrics(name string, read func() realizar.Metrics, stands func() state) *metrics {
	return newMetrics(func(each func(string, realizar.Metrics)) { each(name, read()) }, func() state {
		s, gib := stands(), pool.Need{"cpu": 1 << 30}
		s.pool = poolState{[]pool.Status{{Spec: pool.Spec{Name: name}, State: pool.Ready, Need: gib}}, gib, gib}
		return s
	})
}

// State is how a server stands.
type State = state

// ErrorOf is err as a request is answered with it.
func ErrorOf(err error) *Error {
	x := &Exchange{Request: httptest.NewRequest(http.MethodGet, "/", nil)}
	return x.errorOf(err)
}

// StopTime has time stand still for what connections cost.
func (c *Connections) StopTime() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = func() time.Time { return now }
}

// WaitBy has wait called where a connection that costs too much makes an answer wait.
func (c *Connections) WaitBy(wait func(context.Context, time.Duration)) { c.wait = wait }

// TakeTurns has no large request get its turn until release is called.
func (s *Server) TakeTurns() (release func()) {
	for range cap(s.turns) {
		s.turns <- struct{}{}
	}
	return func() {
		for range cap(s.turns) {
			<-s.turns
		}
	}
}

// Admitted is how many answers are let in and not over.
func (s *Server) Admitted() int {
	taken, _ := s.admission.count()
	return taken
}

// HoldPulse has nobody ask the model whether it is well until release is called.
func (s *Server) HoldPulse() (release func()) {
	h, _ := s.models.Look(s.Names()[0])
	defer h.Release()
	p := &h.Model.pulse
	p.asking.Lock()
	return p.asking.Unlock
}

// Codes are those of errors of the model.
func Codes() (codes []string) {
	for _, k := range kinds {
		codes = append(codes, k.code)
	}
	return codes
}

// Routes are all that s serves, by method and path.
func (s *Server) Routes() (routes []string) {
	for path, methods := range s.methods {
		for _, method := range methods {
			routes = append(routes, method+" "+path)
		}
	}
	slices.Sort(routes)
	return routes
}

// Writer is what the answer to x is written to.
func (x *Exchange) Writer() http.ResponseWriter { return x.w }

// Names are those of all metrics that a request leaves, with their types.
func (m *metrics) Names() (names []string, err error) {
	m.answered(&Exchange{Request: new(http.Request), status: http.StatusOK})
	families, err := m.registry.Gather()
	for _, f := range families {
		names = append(names, f.GetName()+" "+f.GetType().String())
	}
	return names, err
}

// HoldGrammars has no grammar be compiled until release is called.
func (s *Server) HoldGrammars() (release func()) {
	for range cap(s.grammars.slots) {
		s.grammars.slots <- struct{}{}
	}
	return func() {
		for range cap(s.grammars.slots) {
			<-s.grammars.slots
		}
	}
}
