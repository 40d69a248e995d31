package cpu_test

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan/plantest"
)

func TestReference(t *testing.T) { plantest.All(t, cpu.Reference()) }

func TestParallel(t *testing.T) {
	for i, tier := range cpu.Tiers() {
		for _, threads := range []int{1, 3} {
			if testing.Short() && (i > 0 || threads == 1) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d threads", tier, threads), func(t *testing.T) {
				b, err := cpu.New(threads).WithTier(tier)
				if err != nil {
					t.Fatal(err)
				}
				plantest.All(t, b)
			})
		}
	}
}
