//go:build gpu

package cuda_test

import (
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// These tests need a GPU of capability 8.0 or later:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o cuda.test ./internal/cuda

func open(t *testing.T, o cuda.Options) *cuda.Backend {
	t.Helper()
	b, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestPlan(t *testing.T) {
	for name, o := range map[string]cuda.Options{"graphs": {}, "eager": {Eager: true}, "base": {Base: true}} {
		t.Run(name, func(t *testing.T) { plantest.All(t, open(t, o)) })
	}
}
