package cpu

import (
	"fmt"
	"testing"
)

// The loops do as much work as they count, and write only their lanes.
func TestPeakLoops(t *testing.T) {
	for name, loops := range map[string][]peakLoop{"products": productLoops(), "floats": floatLoops()} {
		for _, l := range loops {
			for _, rounds := range []int{1, 2, 7, peakRounds} {
				want := int64(rounds * l.lanes * l.grows)
				if got := l.call(rounds); got != want {
					t.Errorf("%s, %d lanes, %d rounds: %d multiply-adds, want %d", name, l.lanes, rounds, got, want)
				}
				sums := make([]int32, 17)
				for i := range sums {
					sums[i] = 1
				}
				l.run(&sums[0], rounds)
				for i, s := range sums {
					if want := 1 + rounds*l.grows; i < l.lanes && int(s) != want || i >= l.lanes && s != 1 {
						t.Errorf("%s, %d lanes, %d rounds: sum %d is %d", name, l.lanes, rounds, i, s)
					}
				}
			}
		}
	}
}

func BenchmarkPeakLoops(b *testing.B) {
	for name, loops := range map[string][]peakLoop{"products": productLoops(), "floats": floatLoops()} {
		for _, l := range loops {
			b.Run(fmt.Sprintf("%s/lanes=%d", name, l.lanes), func(b *testing.B) {
				var done int64
				for b.Loop() {
					done += l.call(peakRounds)
				}
				b.ReportMetric(float64(done)/b.Elapsed().Seconds()/1e9, "Gmadd/s")
			})
		}
	}
}
