package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
)

func TestReadBandwidth(t *testing.T) {
	for _, threads := range []int{0, 1, 3} {
		for _, size := range []int64{-1, 0, 1, 3 << 20} {
			if b := cpu.ReadBandwidth(threads, size); !(b > 0) || math.IsInf(b, 0) {
				t.Errorf("ReadBandwidth(%d, %d) = %v bytes a second, want a positive number", threads, size, b)
			}
		}
	}
}

func BenchmarkReadBandwidth(b *testing.B) {
	for _, threads := range []int{1, 0} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			var best float64
			for b.Loop() {
				best = max(best, cpu.ReadBandwidth(threads, 256<<20))
			}
			b.ReportMetric(best/1e9, "GB/s")
		})
	}
}
