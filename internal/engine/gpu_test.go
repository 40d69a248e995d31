//go:build gpu

package engine_test

import (
	"os"
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/plan"
)

// The tests of real programs run on a GPU too:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o engine.test ./internal/engine
//	./engine.test -test.v -test.run '/cuda'
//
// Where REALIZAR_EMULATED names a folder for compiled kernels, they run on an emulated device. Decode
// steps attend to all common prefixes once, however short.
func init() {
	backends["cuda"] = func(t *testing.T) plan.Backend {
		o := cuda.Options{PrefixBytes: 1}
		if os.Getenv("REALIZAR_EMULATED") != "" {
			g := emulate.Open(t)
			o.Driver, o.PTX = drivertest.New(t, g.Options(1)).Driver(), g.PTX
		}
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
}
