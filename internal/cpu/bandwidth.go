package cpu

import (
	"encoding/binary"
	"fmt"
	"time"
)

// ReadBandwidth measures how fast [Threads](threads) threads together read memory sequentially, in
// bytes per second. They read a buffer of about size bytes, in large pages if the system grants
// them. It tries each of the processor's loops: vector loads into as many sums as hide the latency
// of an addition, with prefetch at several distances. The result is that of the fastest pass, a
// limit rather than an average. To measure the memory itself, the buffer must be much larger than
// the caches.
func ReadBandwidth(threads int, size int64) float64 {
	const unit = 1 << 20
	data := make([]byte, max(1, size/unit)*unit)
	preferLargePages(data)
	w := newWorkers(Threads(threads))
	defer w.close()
	m := &measurement{workers: w, done: make(chan any)}
	// Pages that were never written may all be one page of zeros. A page is local to the processor
	// that writes it first.
	m.pass(len(data)/4096, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			data[i*4096] = 1
		}
	})
	sums := make([][16]uint64, w.count()) // one or two cache lines each
	var best float64
	for range readPasses {
		for _, sum := range sumLoops() {
			for i := range sums {
				sums[i][0] = 0
			}
			d := m.pass(len(data)/unit, func(worker, lo, hi int) {
				for at := lo * unit; at < hi*unit; at += readBlock {
					sums[worker][0] += sum(data[at : at+readBlock])
				}
			})
			if d > 0 {
				best = max(best, float64(len(data))/d.Seconds())
			}
			var total uint64
			for i := range sums {
				total += sums[i][0]
			}
			if want := uint64(len(data) / 4096); total != want {
				panic(fmt.Sprintf("cpu: a loop that reads memory found %d, want %d", total, want))
			}
		}
	}
	return best
}

const (
	readPasses = 5
	// readBlock is the number of bytes per call of a loop, which cannot be preempted: about ten
	// microseconds.
	readBlock = 128 << 10
)

// A measurement is a job for the workers; worker 0 runs on its own thread.
type measurement struct {
	workers *workers
	n       int
	work    func(worker, lo, hi int)
	took    time.Duration
	done    chan any // value of a panic, or nil
}

// pass runs work on n items and returns the time that it took. A panic of work panics in the
// caller.
func (m *measurement) pass(n int, work func(worker, lo, hi int)) time.Duration {
	m.n, m.work = n, work
	m.workers.post(m)
	if r := <-m.done; r != nil {
		panic(r)
	}
	return m.took
}

// run implements task.
func (m *measurement) run() {
	defer func() { m.done <- recover() }()
	begun := time.Now()
	m.workers.share(m.n, 1, m.work)
	m.took = time.Since(begun)
}

// sumWords returns the sum of b as 64-bit words. The length is a multiple of 512.
func sumWords(b []byte) uint64 {
	le := binary.LittleEndian
	var s [4]uint64
	for ; len(b) >= 64; b = b[64:] {
		s[0] += le.Uint64(b) + le.Uint64(b[8:])
		s[1] += le.Uint64(b[16:]) + le.Uint64(b[24:])
		s[2] += le.Uint64(b[32:]) + le.Uint64(b[40:])
		s[3] += le.Uint64(b[48:]) + le.Uint64(b[56:])
	}
	return s[0] + s[1] + s[2] + s[3]
}
