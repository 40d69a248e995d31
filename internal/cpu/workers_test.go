package cpu

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// poolOf returns a pool of n workers that ends with the test.
func poolOf(t testing.TB, n int) *workers {
	w := newWorkers(n)
	t.Cleanup(w.close)
	return w
}

// taskFunc is a task that is a function.
type taskFunc func()

func (f taskFunc) run() { f() }

// perform posts a task and waits for its end.
func (w *workers) perform(f func()) {
	done := make(chan struct{})
	w.post(taskFunc(func() {
		defer close(done)
		f()
	}))
	<-done
}

// Every index is worked on once, by a worker whose number no other has at that time.
func TestShare(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		w := poolOf(t, n)
		for _, size := range []int{0, 1, 2, 7, 8, 9, 100, 1001} {
			for _, grain := range []int{1, 3, 8, 16, 200} {
				checkShare(t, w, size, grain)
			}
		}
	}
}

func checkShare(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, w *workers, size, grain int) {
	seen := make([]atomic.Int32, size)
	busy := make([]atomic.Bool, w.count())
	w.share(size, grain, func(worker, lo, hi int) {
		if busy[worker].Swap(true) {
			t.Errorf("worker %d is two at once", worker)
		}
		if lo%grain != 0 || lo >= hi || hi > size {
			t.Errorf("a piece from %d to %d of %d, grain %d", lo, hi, size, grain)
		}
		for i := lo; i < hi; i++ {
			seen[i].Add(1)
		}
		busy[worker].Store(false)
	})
	for i := range seen {
		if c := seen[i].Load(); c != 1 {
			t.Fatalf("%d workers, size %d, grain %d: index %d was worked on %d times", w.count(), size, grain, i, c)
		}
	}
}

func TestShareOfAnySize(t *testing.T) {
	var pools []*workers
	for n := range 6 {
		pools = append(pools, poolOf(t, n+1))
	}
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(pools).Draw(t, "pool")
		for range rapid.IntRange(1, 20).Draw(t, "jobs") {
			checkShare(t, w, rapid.IntRange(0, 300).Draw(t, "size"), rapid.IntRange(1, 40).Draw(t, "grain"))
		}
	})
}

// Large sizes and grains do not overflow.
func TestShareOfExtremeSize(t *testing.T) {
	w := poolOf(t, 3)
	for _, grain := range []int{math.MaxInt / 2, math.MaxInt - 1, math.MaxInt} {
		var ran atomic.Int64
		w.share(math.MaxInt, grain, func(_, lo, hi int) { ran.Add(int64(hi - lo)) })
		if ran.Load() != math.MaxInt {
			t.Errorf("grain %d: %d items were worked on", grain, ran.Load())
		}
	}
}

// share waits for a worker that has a piece. A worker that comes to a job too late does not disturb
// the next one. Each job sees what the job before it wrote.
func TestShareInSequence(t *testing.T) {
	for _, n := range []int{2, 4, 16} { // 16 exceeds the number of processors, so that some workers are always late
		w := poolOf(t, n)
		const size = 64
		cells := make([]int, size) // not atomic, for the race detector
		for round := range 2000 {
			w.share(size, 1, func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					if cells[size-1-i]>>1 != round {
						panic(fmt.Sprintf("round %d sees %d", round, cells[size-1-i]))
					}
				}
			})
			w.share(size, 1+round%3, func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					cells[i] += 2
				}
			})
		}
	}
}

// share does not wait for a worker that never runs.
func TestShareWithoutAWorker(t *testing.T) {
	w := poolOf(t, 3)
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	// The first worker to take a piece stays in it, while the others do the rest.
	go func() {
		<-stuck
		for i := range w.spans {
			for v := w.spans[i].Load(); v>>32 > v&math.MaxUint32; v = w.spans[i].Load() {
				runtime.Gosched()
			}
		}
		close(release)
	}()
	var ran atomic.Int64
	w.share(1000, 1, func(worker, lo, hi int) {
		if worker != 0 {
			once.Do(func() { close(stuck); <-release })
		} else {
			<-stuck
		}
		ran.Add(int64(hi - lo))
	})
	if ran.Load() != 1000 {
		t.Errorf("%d of 1000 were worked on", ran.Load())
	}
}

// A job that needs no helpers ends without them.
func TestShareWhileHelpersAreAway(t *testing.T) {
	w := &workers{helpers: make([]helper, 3), spans: make([]span, 4), arrived: make(chan struct{}, 1)} // the helpers do not run
	for i := range w.helpers {
		w.helpers[i].wake = make(chan struct{}, 1)
	}
	for range 3 {
		checkShare(t, w, 100, 1)
	}
}

// A worker's panic reaches the caller, and the workers stay usable.
func TestSharePanics(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		w := poolOf(t, n)
		attempt := func(broken func(lo, hi int) bool) {
			defer func() {
				if r := recover(); r != "broken" {
					t.Errorf("%d workers: recovered %v", n, r)
				}
			}()
			w.share(100, 1, func(_, lo, hi int) {
				if broken(lo, hi) {
					panic("broken")
				}
			})
		}
		for _, at := range []int{0, 50, 99} {
			attempt(func(lo, hi int) bool { return lo <= at && at < hi })
			checkShare(t, w, 100, 1)
		}
		attempt(func(_, _ int) bool { return true }) // of all workers
		checkShare(t, w, 100, 1)
	}
}

// Tasks run in the order in which they were posted, and can share work.
func TestPost(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		w := newWorkers(n)
		var order []int
		sum := make([]int, 100)
		for i := range 3 * maxTasks {
			w.post(taskFunc(func() {
				order = append(order, i)
				if i%5 == 3 {
					panic("broken")
				}
				w.share(len(sum), 1, func(_, lo, hi int) {
					for j := lo; j < hi; j++ {
						sum[j]++
					}
				})
			}))
		}
		w.close() // after the tasks
		if len(order) != 3*maxTasks || !slices.IsSorted(order) {
			t.Errorf("%d workers: the tasks ran in the order %v", n, order)
		}
		want := 0
		for i := range order {
			if i%5 != 3 {
				want++
			}
		}
		for j, s := range sum {
			if s != want {
				t.Fatalf("%d workers: item %d was worked on %d times, want %d", n, j, s, want)
			}
		}
	}
}

// Many pools with more workers than processors all finish.
func TestManyPools(t *testing.T) {
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			w := newWorkers(n%4 + 1)
			defer w.close()
			for range 50 {
				w.perform(func() { checkShare(t, w, 50, 1) })
			}
		})
	}
	all.Wait()
}

// Parked workers are woken by a task, by a job and by close.
func TestWaking(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		w := newWorkers(n)
		for range 20 {
			w.waitForParked()
			checkShare(t, w, 8*n, 1)
			w.waitForParked()
			w.perform(func() { checkShare(t, w, 8*n, 1) })
		}
		w.waitForParked()
		w.close()
	}
}

func (w *workers) waitForParked() {
	for int(w.parked.Load()) < len(w.helpers) {
		runtime.Gosched()
	}
}

// All helpers take part in a job that takes long enough.
func TestAllWorkersWork(t *testing.T) {
	for _, n := range []int{2, 4} {
		w := poolOf(t, n)
		for range 3 {
			w.waitForParked()
			var here sync.WaitGroup
			here.Add(n)
			once := make([]sync.Once, n)
			w.share(8*n, 1, func(worker, _, _ int) {
				once[worker].Do(func() {
					here.Done()
					here.Wait() // until each worker has a piece
				})
			})
		}
	}
}

func TestSharesWithoutAllocation(t *testing.T) {
	w := poolOf(t, 2)
	var sum atomic.Int64
	run := func(_, lo, hi int) { sum.Add(int64(hi - lo)) }
	if n := testing.AllocsPerRun(1000, func() { w.share(100, 1, run) }); n != 0 {
		t.Errorf("share allocates %v times", n)
	}
	done := make(chan struct{})
	var posted task = taskFunc(func() {
		w.share(100, 1, run)
		done <- struct{}{}
	})
	if n := testing.AllocsPerRun(1000, func() { w.post(posted); <-done }); n != 0 {
		t.Errorf("a task allocates %v times", n)
	}
	w.waitForParked()
	if n := testing.AllocsPerRun(20, func() { w.post(posted); <-done; w.waitForParked() }); n != 0 {
		t.Errorf("a task that wakes the workers allocates %v times", n)
	}
}

func TestThreads(t *testing.T) {
	for _, test := range []struct{ n, want int }{{1, 1}, {3, 3}, {1 << 40, maxThreads}} {
		if got := Threads(test.n); got != test.want {
			t.Errorf("Threads(%d) = %d, want %d", test.n, got, test.want)
		}
	}
	if n := Threads(0); n < 1 || n > runtime.NumCPU() || Threads(-1) != n {
		t.Errorf("Threads(0) = %d, Threads(-1) = %d with %d processors", n, Threads(-1), runtime.NumCPU())
	}
}

func TestPlaces(t *testing.T) {
	pairs := topology{cores: [][]int{{0, 4}, {1, 5}}, limit: 8}
	for _, test := range []struct {
		name string
		topology
		n    int
		want [][]int
	}{
		{"a core each", pairs, 2, [][]int{{0, 4}, {1, 5}}},
		{"a logical processor each", pairs, 4, [][]int{{0}, {4}, {1}, {5}}},
		{"fewer than cores", pairs, 1, nil},
		{"between the two", pairs, 3, nil},
		{"more than there are", pairs, 5, nil},
		{"more than the limit", topology{cores: pairs.cores, limit: 1}, 2, nil},
		{"unknown processors", topology{cores: make([][]int, 2), limit: 8}, 2, nil},
	} {
		if got := test.places(test.n); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// Workers park even if the clock stands still.
func TestWorkersInABubble(t *testing.T) {
	before := runtime.GOMAXPROCS(4) // enough threads to spin
	defer runtime.GOMAXPROCS(before)
	for n := range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkers(n + 1)
			synctest.Wait()
			w.perform(func() { checkShare(t, w, 100, 1) })
			synctest.Wait()
			w.close()
		})
	}
}
