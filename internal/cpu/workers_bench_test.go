package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// spare gives the process as many extra threads as the command does.
func spare(b *testing.B, n int) {
	before := runtime.GOMAXPROCS(n + 2)
	b.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// BenchmarkShare measures the cost of a job without work.
func BenchmarkShare(b *testing.B) {
	for _, n := range []int{1, 2} {
		for _, pieces := range []int{2, 16} {
			b.Run(fmt.Sprintf("workers=%d/pieces=%d", n, pieces), func(b *testing.B) {
				spare(b, n)
				w := poolOf(b, n)
				nothing := func(_, _, _ int) {}
				w.perform(func() {
					for b.Loop() {
						w.share(pieces, 1, nothing)
					}
				})
			})
		}
	}
}

// BenchmarkShareWork measures jobs of a few microseconds per worker.
func BenchmarkShareWork(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			spare(b, n)
			w := poolOf(b, n)
			data := make([]byte, 256<<10)
			sums := make([][16]uint64, n)
			w.perform(func() {
				for b.Loop() {
					w.share(len(data)/4096, 1, func(worker, lo, hi int) { sums[worker][0] += sumWords(data[lo*4096 : hi*4096]) })
				}
			})
			b.SetBytes(int64(len(data)))
		})
	}
}

// BenchmarkWake measures a task when all workers are parked.
func BenchmarkWake(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			spare(b, n)
			w := poolOf(b, n)
			done := make(chan struct{})
			var here sync.WaitGroup
			var t task = taskFunc(func() {
				here.Add(n)
				w.share(n, 1, func(_, _, _ int) { here.Done(); here.Wait() }) // all workers take part
				done <- struct{}{}
			})
			var total time.Duration
			for b.Loop() {
				w.waitForParked()
				time.Sleep(idle) // lets the processors rest
				begun := time.Now()
				w.post(t)
				<-done
				total += time.Since(begun)
			}
			b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns/wake")
		})
	}
}

// BenchmarkOthers measures how late other goroutines run while all workers share work without a
// pause: the 99th percentile and the maximum of the delay of a 1 ms ticker, and the time of a
// garbage collection.
func BenchmarkOthers(b *testing.B) {
	n := Threads(0)
	spare(b, n)
	w := poolOf(b, n)
	var stop atomic.Bool
	done := make(chan struct{})
	w.post(taskFunc(func() {
		defer close(done)
		for !stop.Load() {
			w.share(n, 1, func(_, _, _ int) {
				for begun := time.Now(); time.Since(begun) < 50*time.Microsecond; {
				}
			})
		}
	}))
	var late []time.Duration
	ticker := time.NewTicker(time.Millisecond)
	for b.Loop() {
		at := <-ticker.C
		late = append(late, time.Since(at))
	}
	ticker.Stop()
	begun := time.Now()
	const collections = 10
	for range collections {
		runtime.GC()
	}
	collection := time.Since(begun) / collections
	stop.Store(true)
	<-done
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "µs-late-p99")
	b.ReportMetric(float64(late[len(late)-1].Microseconds()), "µs-late-max")
	b.ReportMetric(float64(collection.Microseconds()), "µs/collection")
}
