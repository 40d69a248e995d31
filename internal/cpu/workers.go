package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// workers are goroutines that share the work of one job at a time; where that helps, each is locked
// to its own thread. They run tasks in order: worker 0 runs the task, and all workers run what the
// task passes to share.
//
// A job is cut into units. Each worker has a span of consecutive units, so that it reads memory
// sequentially. It takes a few units at a time from the front of its span, and then from the back
// of other spans. The fields of a job do not change before all its units have been taken and done.
// So a worker that comes late finds either nothing or a unit of the next job, both of which are
// correct, and share need not wait for workers that have taken nothing.
type workers struct {
	patience time.Duration // how long an idle helper spins before it parks
	eager    time.Duration // how long worker 0 spins
	tasks    chan task
	helpers  []helper // worker i+1 is helpers[i]
	ended    sync.WaitGroup
	closed   atomic.Bool
	parked   atomic.Int32 // number of parked helpers

	_ line

	// The job, written only by share.
	run    func(worker, lo, hi int)
	then   func(worker int) // nil, or called by a worker that had a part, while others still work
	size   int              // items
	unit   int              // items per unit, except the last
	units  int
	failed atomic.Pointer[any] // value of a unit's panic
	spans  []span              // by worker

	_    line
	jobs atomic.Int64 // number of jobs so far

	_       line
	done    atomic.Int64  // units done; each worker adds its own at the end
	waiting atomic.Bool   // share waits for arrived
	arrived chan struct{} // the job's last unit may be done

	_ line
}

// line separates fields that are written often from fields that are read often. Processors fetch
// cache lines of 64 bytes in pairs.
type line [128]byte

// A span is the units lo <= i < hi that are not taken, with hi in the upper half.
type span struct {
	atomic.Uint64
	_ line
}

func (s *span) set(lo, hi int) { s.Store(uint64(hi)<<32 | uint64(lo)) }

// front takes some of the first units; near the end, one.
func (s *span) front() (lo, hi int, ok bool) {
	for {
		v := s.Load()
		lo, hi := int(uint32(v)), int(v>>32)
		if lo >= hi {
			return 0, 0, false
		}
		n := max(1, (hi-lo)/16)
		if s.CompareAndSwap(v, v+uint64(n)) {
			return lo, lo + n, true
		}
	}
}

// back takes some of the last units: more if there are many, so that they are consecutive too.
func (s *span) back() (lo, hi int, ok bool) {
	for {
		v := s.Load()
		lo, hi := int(uint32(v)), int(v>>32)
		if lo >= hi {
			return 0, 0, false
		}
		n := max(1, (hi-lo)/4)
		if s.CompareAndSwap(v, uint64(hi-n)<<32|uint64(lo)) {
			return hi - n, hi, true
		}
	}
}

// A helper is a worker other than worker 0.
type helper struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// A task is work for worker 0, which may call share.
type task interface{ run() }

const (
	// maxTasks is the number of tasks that post can queue without waiting.
	maxTasks = 16
	// idle is how long workers spin without work: longer than the time between two steps of a
	// model, and too short for a user to notice.
	idle = time.Millisecond
	// arrival is how long share spins for the last units, and how long helpers spin between jobs if
	// processors are scarce. A worker that takes longer has probably lost its processor.
	arrival = 100 * time.Microsecond
)

// newWorkers starts n workers. If n is the number of cores or of logical processors that the
// process may use, each worker is bound to its own. Otherwise the system places them, because it
// knows what else runs.
func newWorkers(n int) *workers {
	n = max(1, n)
	w := &workers{tasks: make(chan task, maxTasks), helpers: make([]helper, n-1), spans: make([]span, n), arrived: make(chan struct{}, 1)}
	// Workers spin for long if each has a core and a thread is left for the rest of the process.
	// They spin at all only if each has a processor; otherwise they would take time from the
	// workers that they wait for.
	switch {
	case n <= Threads(0) && n < runtime.GOMAXPROCS(0):
		w.patience, w.eager = idle, idle
	case n <= min(runtime.NumCPU(), thisMachine().limit):
		w.patience = arrival
	}
	places := thisMachine().places(n)
	start := func(i int, work func()) {
		w.ended.Go(func() {
			// A mapped file may be truncated while its weights are read. That makes a unit panic,
			// and the worker continues.
			debug.SetPanicOnFault(true)
			if places != nil {
				settle(places[i])
			}
			work()
		})
	}
	for i := range w.helpers {
		w.helpers[i].wake = make(chan struct{}, 1)
		start(i+1, func() { w.help(i) })
	}
	start(0, w.lead)
	return w
}

// count returns the number of workers.
func (w *workers) count() int { return len(w.helpers) + 1 }

// post queues t for worker 0, after all earlier tasks. It waits only if maxTasks tasks are queued.
// A panic ends only the task; the task must recover to report it.
func (w *workers) post(t task) {
	w.tasks <- t
	w.rouse(len(w.helpers))
}

// close ends the workers after all posted tasks. A task must not call it. After it, post and share
// must not be called.
func (w *workers) close() {
	close(w.tasks)
	w.ended.Wait()
}

// share splits 0 <= i < n into pieces of a multiple of grain items. The workers call run for each
// piece, with a number that no other worker has at that time. share returns when all pieces are
// done. If run panics, share panics; the workers stay usable.
//
// There must be fewer than 2^32 pieces of grain items.
//
// The caller is worker 0: a task, or any goroutine while the workers have no task. Only one
// goroutine may call share at a time, and run must not call it.
func (w *workers) share(n, grain int, run func(worker, lo, hi int)) {
	if n <= 0 {
		return
	}
	if n <= grain || len(w.helpers) == 0 {
		run(0, 0, n)
		return
	}
	w.run, w.size, w.unit, w.units = run, n, grain, (n-1)/grain+1
	w.done.Store(0)
	count := len(w.spans)
	for i := range w.spans {
		w.spans[i].set(w.units*i/count, w.units*(i+1)/count)
	}
	w.jobs.Add(1)
	w.rouse(w.units - 1)
	w.work(0)
	w.await()
	w.run = nil
	if r := w.failed.Swap(nil); r != nil {
		panic(*r)
	}
}

// take takes units, first from the worker's own span.
func (w *workers) take(worker int) (lo, hi int, ok bool) {
	if lo, hi, ok = w.spans[worker].front(); ok {
		return lo, hi, true
	}
	for i := range w.spans {
		if lo, hi, ok = w.spans[(worker+i)%len(w.spans)].back(); ok {
			return lo, hi, true
		}
	}
	return 0, 0, false
}

// work takes and runs units until none are left.
func (w *workers) work(worker int) {
	lo, hi, ok := w.take(worker)
	if !ok {
		return
	}
	run, then, size, unit, units := w.run, w.then, w.size, w.unit, w.units
	taken := 0
	for ; ok; lo, hi, ok = w.take(worker) {
		taken += hi - lo
		if w.failed.Load() != nil {
			continue // the job has already failed
		}
		end := size
		if hi < units {
			end = hi * unit
		}
		w.attempt(run, worker, lo*unit, end)
	}
	// After this, the fields may describe the next job.
	if w.done.Add(int64(taken)) == int64(units) && w.waiting.Load() && w.waiting.CompareAndSwap(true, false) {
		w.arrived <- struct{}{}
	}
	if then != nil {
		then(worker)
	}
}

// attempt stores a panic for share.
func (w *workers) attempt(run func(worker, lo, hi int), worker, lo, hi int) {
	defer func() {
		if r := recover(); r != nil {
			kept := r // r would be allocated even without a panic
			w.failed.Store(&kept)
		}
	}()
	run(worker, lo, hi)
}

// await waits until all units are done.
func (w *workers) await() {
	all := int64(w.units)
	for !spin(min(arrival, w.patience), func() bool { return w.done.Load() == all }) {
		w.waiting.Swap(true) // in an emulator, a store could be reordered after the load
		if w.done.Load() == all && w.waiting.CompareAndSwap(true, false) {
			return
		}
		<-w.arrived // sent by the worker that has reset waiting, perhaps for the previous job
	}
}

// rouse wakes those of the first n helpers that are parked.
func (w *workers) rouse(n int) {
	if w.parked.Load() == 0 {
		return
	}
	for i := range w.helpers[:min(n, len(w.helpers))] {
		w.helpers[i].rouse(&w.parked)
	}
}

func (h *helper) rouse(parked *atomic.Int32) {
	if h.asleep.Load() && h.asleep.CompareAndSwap(true, false) {
		parked.Add(-1)
		h.wake <- struct{}{}
	}
}

// lead runs worker 0.
func (w *workers) lead() {
	for {
		var t task
		open := true
		ready := func() bool {
			select {
			case t, open = <-w.tasks:
				return true
			default:
				return false
			}
		}
		if !spin(w.eager, ready) {
			t, open = <-w.tasks
		}
		if !open {
			break
		}
		perform(t)
	}
	w.closed.Swap(true) // see await
	for i := range w.helpers {
		w.helpers[i].rouse(&w.parked)
	}
}

func perform(t task) {
	defer func() { _ = recover() }()
	t.run()
}

// help runs worker i+1.
func (w *workers) help(i int) {
	h := &w.helpers[i]
	seen := int64(0)
	wanted := func() bool { return w.jobs.Load() != seen || w.closed.Load() }
	for !w.closed.Load() {
		if spin(w.patience, wanted) {
			seen = w.jobs.Load()
			w.work(i + 1)
			continue
		}
		w.parked.Add(1)
		h.asleep.Swap(true) // see await
		if wanted() {
			h.rouse(&w.parked)
		}
		<-h.wake
	}
}

// spin polls ready for about patience and reports whether it became true. The loop is Go code, so
// that the garbage collector can stop it.
func spin(patience time.Duration, ready func() bool) bool {
	const (
		polls   = 64                  // a few microseconds
		fastest = 4 * time.Nanosecond // duration of the fastest poll
	)
	var begun time.Time
	// The number of polls is bounded too, because in a testing/synctest bubble the clock stops
	// while a goroutine runs.
	for left := patience; ; left -= polls * fastest {
		for range polls {
			if ready() {
				return true
			}
			pause()
		}
		switch {
		case left <= 0:
			return false
		case begun.IsZero():
			begun = time.Now()
		case time.Since(begun) > patience:
			return false
		}
	}
}
