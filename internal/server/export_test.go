package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
)

// PromptNote and what follows are exported for the tests in package server_test.
const PromptNote = promptNote

var (
	Scrape, Values, HistogramOf = scrape, values, histogram
	MadeUp                      = madeUp
	RecoverTo                   = recoverTo
)

// NewMetrics returns the metrics of a server with one model.
func NewMetrics(name string, read func() realizar.Metrics, stands func() state) *metrics {
	return newMetrics(func() state {
		s, gib := stands(), pool.Need{"cpu": 1 << 30}
		s.pool = poolState{[]pool.Status{{Spec: pool.Spec{Name: name}, State: pool.Ready, Need: gib}}, gib, gib}
		s.models = []modelMetrics{{name, read()}}
		return s
	})
}

// State is the state of a server.
type State = state

// ErrorOf returns the error with which a request is answered for err.
func ErrorOf(err error) *Error {
	x := &Exchange{Request: httptest.NewRequest(http.MethodGet, "/", nil)}
	return x.errorOf(err)
}

// StopTime stops the clock for the costs of connections.
func (c *Connections) StopTime() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = func() time.Time { return now }
}

// WaitBy replaces the waiting: for answers of connections that cost too much, and before connections
// close whose clients still send.
func (c *Connections) WaitBy(wait func(context.Context, time.Duration)) { c.wait = wait }

// TakeTurns prevents large requests from getting their turns until release is called.
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

// Admitted returns the number of answers that are admitted and have not ended.
func (s *Server) Admitted() int {
	taken, _ := s.admission.count()
	return taken
}

// HoldPulse prevents checks of the model's health until release is called.
func (s *Server) HoldPulse() (release func()) {
	h, _ := s.models.Look(s.Names()[0])
	defer h.Release()
	p := &h.Model.pulse
	p.asking.Lock()
	return p.asking.Unlock
}

// Codes returns the codes of errors of the model.
func Codes() (codes []string) {
	for _, k := range kinds {
		codes = append(codes, k.code)
	}
	return codes
}

// Routes returns all routes of s as "METHOD /path".
func (s *Server) Routes() (routes []string) {
	for path, methods := range s.methods {
		for _, method := range methods {
			routes = append(routes, method+" "+path)
		}
	}
	slices.Sort(routes)
	return routes
}

// Writer returns the writer of the answer to x.
func (x *Exchange) Writer() http.ResponseWriter { return x.w }

// Names returns the names of all metrics that a request leaves, with their types.
func (m *metrics) Names() (names []string, err error) {
	m.answered(&Exchange{Request: new(http.Request), status: http.StatusOK})
	text, err := m.append(nil)
	for _, head := range regexp.MustCompile(`(?m)^# TYPE (.*)$`).FindAllSubmatch(text, -1) {
		names = append(names, string(head[1]))
	}
	return names, err
}

// HoldGrammars prevents the compilation of grammars until release is called.
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
