package cpu_test

import (
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan/plantest"
)

func TestReference(t *testing.T) { plantest.All(t, cpu.Reference()) }

func TestParallel(t *testing.T) {
	for _, threads := range []int{1, 3} {
		plantest.All(t, cpu.New(threads))
	}
}
