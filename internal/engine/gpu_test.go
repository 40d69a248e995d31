//go:build gpu

package engine_test

import (
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/plan"
)

// The tests of real programs run on a GPU too:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o engine.test ./internal/engine
//	./engine.test -test.v -test.run '/cuda'
func init() {
	backends["cuda"] = func(t *testing.T) plan.Backend {
		b, err := cuda.Open(cuda.Options{})
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
}
