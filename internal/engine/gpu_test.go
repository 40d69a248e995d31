//go:build gpu

package engine_test

import (
	"io"
	"os"
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
)

// The tests of real programs run on a GPU too, and on two if there are two:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o engine.test ./internal/engine
//	./engine.test -test.v -test.run '/cuda'
//
// Where REALIZAR_EMULATED names a folder for compiled kernels, they run on emulated devices. Decode
// steps attend to all common prefixes once, however short.
func init() {
	backends["cuda"] = func(t *testing.T) plan.Backend {
		b, err := cuda.Open(gpuOptions(t, 1))
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, b)
		return b
	}
	for name, split := range map[string]mesh.Split{"cuda by tensor": mesh.ByTensor, "cuda by layer": mesh.ByLayer} {
		backends[name] = func(t *testing.T) plan.Backend {
			g, err := cuda.OpenGroup(gpuOptions(t, 2), []int{0, 1})
			if err != nil {
				t.Skipf("there are no two GPUs: %v", err)
			}
			closeAtEnd(t, g)
			return mesh.New(g, 2, split)
		}
	}
}

// gpuOptions returns the options of that many devices.
func gpuOptions(t *testing.T, devices int) cuda.Options {
	t.Helper()
	o := cuda.Options{PrefixBytes: 1}
	if os.Getenv("REALIZAR_EMULATED") != "" {
		g := emulate.Open(t)
		o.Driver, o.PTX = drivertest.New(t, g.Options(devices)).Driver(), g.PTX
	}
	return o
}

func closeAtEnd(t *testing.T, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
