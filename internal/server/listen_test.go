package server_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
)

// TestLoading checks that the address answers while the model is being loaded, and serves the model
// afterwards.
func TestLoading(t *testing.T) {
	loading := server.Loading{Dialects: dialects.All, Models: []string{"m"}}
	h := httptest.NewServer(&loading)
	defer h.Close()
	s := &service{Server: h, t: t}
	if r := s.get("/health"); r.status != 200 || r.body != `{"status":"loading"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.get("/metrics"); r.status != 200 || !strings.Contains(r.body, `realizar_model_state{model_name="m",state="loading"} 1`) || !strings.Contains(r.body, `state="ready"} 0`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, r := range []reply{s.get("/ready"), s.post("/v1/chat/completions", "{}"), s.post("/health", "")} {
		r.fails(t, 503, "", "loading")
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	loading.Loaded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if r := s.get("/health"); r.status != http.StatusTeapot {
		t.Errorf("%d", r.status)
	}
}

// TestHeaderLimit checks that a request with too large a header is refused.
func TestHeaderLimit(t *testing.T) {
	bounds, err := server.NewConnections(4, 4)
	if err != nil {
		t.Fatal(err)
	}
	h := server.HTTP(http.NotFoundHandler(), bounds, server.Deadlines{}, slog.New(slog.DiscardHandler))
	if h.ReadHeaderTimeout == 0 || h.IdleTimeout == 0 {
		t.Error("there is a time without a limit")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(listener) }()
	defer func() { h.Close(); <-done }()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 128<<10)+"\r\n\r\n")
	}()
	answer := make([]byte, len("HTTP/1.1 431"))
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 431" {
		t.Errorf("%q, %v", answer, err)
	}
}
