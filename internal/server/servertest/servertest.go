// Package servertest serves models in the tests of package server and of the dialects.
package servertest

import (
	"cmp"
	"context"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// Open opens the model at path until the test ends, on the processor unless o has a device.
func Open(t testing.TB, path string, o realizar.Options) *realizar.Model {
	t.Helper()
	o.Device = cmp.Or(o.Device, "cpu")
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

// One returns a pool that has only m, under the given names.
func One(t testing.TB, m *realizar.Model, names ...string) *server.Models {
	t.Helper()
	models, err := server.One(&server.Model{Model: m}, names...)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

// Serve serves models until the test ends, and does not close them. Each connection has a small
// write buffer, which is soon full if the client does not read.
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

// Held returns a handler that takes the only model and then calls handle.
func Held(handle server.Handler) server.Handler {
	return func(x *server.Exchange) error {
		if err := x.Hold(""); err != nil {
			return err
		}
		return handle(x)
	}
}
