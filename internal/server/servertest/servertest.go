// Package servertest has what tests of servers and dialects share.
package servertest

import (
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// One is m alone under these names.
func One(t testing.TB, m *realizar.Model, names ...string) *server.Models {
	t.Helper()
	all, err := server.One(&server.Model{Model: m}, names...)
	if err != nil {
		t.Fatal(err)
	}
	return all
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
