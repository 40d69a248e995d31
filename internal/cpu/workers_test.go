package cpu

import (
	"sync/atomic"
	"testing"
)

// Every index is worked on once, by a worker that nobody else is at that moment.
func TestShare(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		w := newWorkers(n)
		defer w.close()
		for _, size := range []int{0, 1, 2, 7, 8, 9, 100, 1001} {
			for _, grain := range []int{1, 3, 8, 16, 200} {
				seen := make([]atomic.Int32, size)
				busy := make([]atomic.Bool, n)
				w.share(size, grain, func(worker, lo, hi int) {
					if busy[worker].Swap(true) {
						t.Errorf("worker %d is two at once", worker)
					}
					if lo%grain != 0 && size > grain || hi > size {
						t.Errorf("a piece from %d to %d of %d, grain %d", lo, hi, size, grain)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
					busy[worker].Store(false)
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("%d workers, size %d, grain %d: index %d was worked on %d times", n, size, grain, i, c)
					}
				}
			}
		}
	}
}

// A worker's panic is the caller's, and the workers live on.
func TestSharePanics(t *testing.T) {
	w := newWorkers(4)
	defer w.close()
	for _, at := range []int{0, 50, 99} {
		func() {
			defer func() {
				if r := recover(); r != "broken" {
					t.Errorf("recovered %v", r)
				}
			}()
			w.share(100, 1, func(_, lo, hi int) {
				if lo <= at && at < hi {
					panic("broken")
				}
			})
		}()
	}
	sum := atomic.Int64{}
	w.share(100, 1, func(_, lo, hi int) { sum.Add(int64(hi - lo)) })
	if sum.Load() != 100 {
		t.Errorf("after panics %d of 100 were worked on", sum.Load())
	}
}
