package cpu

import "fmt"

// PeakProducts measures how many multiply-adds per second [Threads](threads) threads together can
// compute on 8-bit numbers with 32-bit sums. It uses the instructions of the kernels for quantized
// weights, on numbers in registers. Like [ReadBandwidth] it tries the loops of every instruction
// set of this processor; the result is that of the fastest pass. It is 0 if there is no such loop.
func PeakProducts(threads int) float64 { return peak(threads, productLoops()) }

// PeakFloats is [PeakProducts] for float32.
func PeakFloats(threads int) float64 { return peak(threads, floatLoops()) }

// A peakLoop multiplies and adds in registers. Every round adds grows to each lane of the sums,
// which is the number of multiply-adds per lane.
type peakLoop struct {
	lanes, grows int
	run          func(sums *int32, rounds int)
}

const (
	peakPasses = 8
	// peakRounds is the number of rounds per call of a loop: about twenty microseconds.
	peakRounds = 4096
	// peakCalls is the number of calls per pass and thread: some milliseconds.
	peakCalls = 256
)

func peak(threads int, loops []peakLoop) float64 {
	if len(loops) == 0 {
		return 0
	}
	w := newWorkers(Threads(threads))
	defer w.close()
	m := &measurement{workers: w, done: make(chan any)}
	done := make([][16]int64, w.count()) // one or two cache lines each
	calls := peakCalls * w.count()
	var best float64
	for range peakPasses {
		for _, l := range loops {
			clear(done)
			d := m.pass(calls, func(worker, lo, hi int) {
				for range hi - lo {
					done[worker][0] += l.call(peakRounds)
				}
			})
			var all int64
			for i := range done {
				all += done[i][0]
			}
			if want := int64(calls) * peakRounds * int64(l.lanes*l.grows); all != want {
				panic(fmt.Sprintf("cpu: a loop that multiplies added up %d, want %d", all, want))
			}
			if d > 0 {
				best = max(best, float64(all)/d.Seconds())
			}
		}
	}
	return best
}

// call returns the number of multiply-adds in that many rounds.
func (l *peakLoop) call(rounds int) int64 {
	var sums [16]int32
	l.run(&sums[0], rounds)
	var all int64
	for _, s := range sums {
		all += int64(s)
	}
	return all
}
