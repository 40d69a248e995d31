package cuda

import (
	"os"
	"testing"

	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// openEmulated opens a device whose kernels run on the host.
func openEmulated(t *testing.T) *Backend {
	t.Helper()
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	t.Setenv("REALIZAR_UNTRIED_KERNELS", "1")
	g := emulate.Open(t)
	b, _ := openFake(t, g.Options(), Options{PTX: g.PTX})
	return b
}

// Kernels compute what operations mean: those of which the host compiles few.
func TestEmulated(t *testing.T) {
	plantest.Some(t, openEmulated(t), "Conv", "Elementwise", "Pick", "PickMean",
		"Concat", "Mul", "Temper", "Mix", "Rescale", "Sparsify")
}

// TestEmulatedSuite runs the whole suite if REALIZAR_EMULATED names a folder for compiled kernels. It
// takes minutes, and longer if the folder is empty.
func TestEmulatedSuite(t *testing.T) {
	if os.Getenv("REALIZAR_EMULATED") == "" {
		t.Skip("REALIZAR_EMULATED names no folder")
	}
	plantest.All(t, openEmulated(t))
}
