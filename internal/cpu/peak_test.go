package cpu_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
)

func TestPeak(t *testing.T) {
	known := runtime.GOARCH == "amd64" && len(cpu.Tiers()) > 1
	for _, threads := range []int{0, 1, 3} {
		for name, measure := range map[string]func(int) float64{"PeakProducts": cpu.PeakProducts, "PeakFloats": cpu.PeakFloats} {
			if p := measure(threads); p < 0 || math.IsInf(p, 0) || math.IsNaN(p) || known && p == 0 {
				t.Errorf("%s(%d) = %v multiply-adds a second", name, threads, p)
			}
		}
	}
}

func BenchmarkPeak(b *testing.B) {
	for _, threads := range []int{1, 0} {
		for name, measure := range map[string]func(int) float64{"products": cpu.PeakProducts, "floats": cpu.PeakFloats} {
			b.Run(fmt.Sprintf("%s/threads=%d", name, threads), func(b *testing.B) {
				var best float64
				for b.Loop() {
					best = max(best, measure(threads))
				}
				b.ReportMetric(best/1e9, "Gmadd/s")
			})
		}
	}
}
