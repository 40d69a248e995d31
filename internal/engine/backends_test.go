package engine_test

import (
	"context"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
)

// backends are the backends that run real programs, by name. Builds for other hardware add more.
var backends = map[string]func(*testing.T) plan.Backend{
	"cpu":      func(*testing.T) plan.Backend { return cpu.New(2) },
	"mesh":     func(*testing.T) plan.Backend { return mesh.New(cpu.New(1), 2, mesh.ByTensor) },
	"pipeline": func(*testing.T) plan.Backend { return mesh.New(cpu.New(1), 2, mesh.ByLayer) },
}

// onBackends runs test with each backend.
func onBackends(t *testing.T, test func(t *testing.T, b plan.Backend)) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// open returns an engine that is checked and closed when the test ends.
func open(t *testing.T, b plan.Backend, p *plan.Program, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(context.Background(), p, b, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
