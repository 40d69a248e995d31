// Package servertest serves models to the tests of package server and of dialects.
package servertest

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// Serve opens the model at path on the processor and serves it at an address of its own, until the
// test ends. Connections have small buffers, which are soon full for a client that does not read.
func Serve(t testing.TB, path string, o realizar.Options, c server.Config) (*httptest.Server, *realizar.Model, *server.Server) {
	t.Helper()
	o.Device = "cpu"
	m, err := realizar.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(m, c)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(s.Handler())
	h.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		return ctx
	}
	h.Start()
	t.Cleanup(func() {
		s.Stop()
		h.Close()
		h.Client().CloseIdleConnections()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, m, s
}
