package server_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/servertest"
)

// failingDialect has an endpoint whose handler fails.
type failingDialect struct{ server.Dialect }

func (failingDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "GET /test/fails", Handle: servertest.Held(func(*server.Exchange) error { return errors.New("a secret reason") })}}
}

// A log collects what a server logs. It can be read while the server runs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// failed returns a server of one answer at a time that has failed a request. If hold is set, the
// model's health is not checked.
func failed(t *testing.T, hold bool) (s *service, written *log) {
	t.Helper()
	written = new(log)
	c := server.Config{Parallel: 1, Dialects: append([]server.Dialect{failingDialect{dialects.All[0]}}, dialects.All...), Logger: slog.New(slog.NewTextHandler(written, nil))}
	s = serve(t, c, realizar.Options{Parallel: 1}, long)
	if hold {
		t.Cleanup(s.server.HoldPulse())
	}
	s.get("/test/fails").fails(t, 500, "", "")
	return s, written
}

// TestReadyAfterAnAnswer checks that after a failure the server is not ready and says why, even if
// the queue is full, until the model has answered a request.
func TestReadyAfterAnAnswer(t *testing.T) {
	s, written := failed(t, true)
	notReady := func() {
		t.Helper()
		if e := s.get("/ready").fails(t, 503, "", "model_failed"); !strings.Contains(e.Message, "the log of the server has details") {
			t.Errorf("%q does not say why", e.Message)
		}
	}
	notReady()
	if r := s.post("/tokenize", `{"prompt":"x"}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	s.post("/v1/completions", `{"model":"small","prompt":"x","max_tokens":-2}`).fails(t, 400, "max_tokens", "invalid_value")
	if r := s.post("/v1/completions", `{"model":"small","prompt":"x","max_tokens":0,"echo":true}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	notReady() // after requests that did not run the model
	stop := s.endless()
	notReady() // even if the queue is full
	stop()
	s.idle()
	if r := s.post("/v1/completions", `{"model":"small","prompt":"x","max_tokens":1}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("after an answer: %d %s", r.status, r.body)
	}
	if text := written.String(); strings.Count(text, "the model fails") != 1 || strings.Count(text, "the model answers again") != 1 || !strings.Contains(text, "a secret reason") {
		t.Errorf("the log: %s", text)
	}
}

// TestReadyWhereAllPlacesAreTaken checks that the model's health can be checked while all places
// are taken.
func TestReadyWhereAllPlacesAreTaken(t *testing.T) {
	s, _ := failed(t, false)
	defer s.endless()()
	s.get("/ready").fails(t, 429, "", "queue_full")
}
