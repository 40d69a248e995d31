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

// Open opens the model at path on the processor until the test ends.
func Open(t testing.TB, path string, o realizar.Options) *realizar.Model {
	t.Helper()
	o.Device = "cpu"
	m, err := realizar.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// One returns a pool of m alone under these names.
func One(t testing.TB, m *realizar.Model, names ...string) *server.Models {
	t.Helper()
	models, err := server.One(&server.Model{Model: m}, names...)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

// Serve serves models at an address of its own until the test ends, and leaves them open.
// Connections have small buffers, which are soon full for a client that does not read.
func Serve(t testing.TB, models *server.Models, c server.Config) (*httptest.Server, *server.Server) {
	t.Helper()
	s, err := server.New(models, c)
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
	})
	return h, s
}

// Held is a handler of requests for the only model.
func Held(handle server.Handler) server.Handler {
	return func(x *server.Exchange) error {
		if err := x.Hold(""); err != nil {
			return err
		}
		return handle(x)
	}
}
