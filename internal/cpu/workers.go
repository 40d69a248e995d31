package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// workers are goroutines, on threads of their own where that helps, that share
// the work of one job at a time. They carry out tasks one after the other: worker
// 0 runs the task, and what the task gives to share is worked on by all.
//
// A job is cut into units, and each worker has a span of them that follow each
// other, so that what it reads lies in order. It takes a few at a time from the
// front, and then from the back of what others have left. Whoever takes a unit
// owns a part of the job whose fields stand beside the spans; these do not change
// before every unit has been taken and done. So a worker that comes late finds
// nothing or a unit of the next job, both of which are right, and share need not
// wait for workers that took nothing.
type workers struct {
	patience time.Duration // for which a helper without work spins before it parks
	eager    time.Duration // for which worker 0 does
	tasks    chan task
	helpers  []helper // worker i+1 is helpers[i]
	ended    sync.WaitGroup
	closed   atomic.Bool
	parked   atomic.Int32 // helpers that wait to be woken

	_ line

	// The job, written by share alone.
	run    func(worker, lo, hi int)
	then   func(worker int) // nil, or what a worker that had a part does while others still work
	size   int              // items
	unit   int              // items of a unit, the last one aside
	units  int
	failed atomic.Pointer[any] // what a unit panicked with
	spans  []span              // by worker

	_    line
	jobs atomic.Int64 // so far

	_       line
	done    atomic.Int64  // units that are done, each worker's reported at its end
	waiting atomic.Bool   // share waits for arrived
	arrived chan struct{} // the job's last unit may be done

	_ line
}

// line keeps what is written often from what is read often. Processors fetch
// cache lines in pairs of 64 bytes.
type line [128]byte

// A span is units lo <= i < hi that nobody has taken, hi in the upper half.
type span struct {
	atomic.Uint64
	_ line
}

func (s *span) set(lo, hi int) { s.Store(uint64(hi)<<32 | uint64(lo)) }

// front takes some of the first units, one at the end.
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

// back takes some of the last units: more where there are many, so that they too
// follow each other.
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
	// maxTasks is how many tasks can be posted before one begins.
	maxTasks = 16
	// idle is how long workers spin when there is nothing to do. It is longer than
	// what lies between two steps of a model, and short beside a person's notice.
	idle = time.Millisecond
	// arrival is how long share spins for the last pieces, and helpers between two
	// jobs where they should not take much. Workers that are not done by then have
	// most likely lost their processor.
	arrival = 100 * time.Microsecond
)

// newWorkers starts n workers. Where they are as many as the processor cores or
// the logical processors that the process may use, each keeps to its own; fewer
// are left to the system, which knows what else runs, and so are more.
func newWorkers(n int) *workers {
	n = max(1, n)
	w := &workers{tasks: make(chan task, maxTasks), helpers: make([]helper, n-1), spans: make([]span, n), arrived: make(chan struct{}, 1)}
	// Spinning for long is for workers that have a core each and leave a thread to
	// the rest of the process. Spinning at all is for those that have a processor
	// each; others would take time from those they wait for.
	switch {
	case n <= Threads(0) && n < runtime.GOMAXPROCS(0):
		w.patience, w.eager = idle, idle
	case n <= min(runtime.NumCPU(), thisMachine().limit):
		w.patience = arrival
	}
	places := thisMachine().places(n)
	start := func(i int, work func()) {
		w.ended.Go(func() {
			// Weights that are read from a mapped file are not there any more where it was
			// cut short. Of that too a worker's unit panics, and the worker goes on.
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

// count is the number of workers.
func (w *workers) count() int { return len(w.helpers) + 1 }

// post has worker 0 run t after the tasks posted before it. It waits only where
// maxTasks are waiting already. A task's panic ends the task; it is for the task
// to recover and to say so.
func (w *workers) post(t task) {
	w.tasks <- t
	w.rouse(len(w.helpers))
}

// close ends the workers once the tasks posted before are done. It must not be
// called by a task, and nothing may be posted or shared after it.
func (w *workers) close() {
	close(w.tasks)
	w.ended.Wait()
}

// share cuts 0 <= i < n into pieces of a multiple of grain and has the workers
// call run for each, with a number that no other worker has at that moment; it
// returns when all is done. A panic of one becomes a panic of the caller, after
// which the workers are as good as before.
//
// There may be 2^32-1 pieces of grain items at most.
//
// The caller is worker 0: a task, or whoever uses workers that have no task. Only
// one may share at a time, and not from within run.
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

// take takes units, of the worker's own span first.
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

// work takes units until there are none.
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
			continue // the job fails whatever else is done
		}
		end := size
		if hi < units {
			end = hi * unit
		}
		w.attempt(run, worker, lo*unit, end)
	}
	// From here on the job may be another one.
	if w.done.Add(int64(taken)) == int64(units) && w.waiting.Load() && w.waiting.CompareAndSwap(true, false) {
		w.arrived <- struct{}{}
	}
	if then != nil {
		then(worker)
	}
}

// attempt keeps a panic for the caller of share.
func (w *workers) attempt(run func(worker, lo, hi int), worker, lo, hi int) {
	defer func() {
		if r := recover(); r != nil {
			kept := r // r itself would be allocated without a panic too
			w.failed.Store(&kept)
		}
	}()
	run(worker, lo, hi)
}

// await returns when all units are done.
func (w *workers) await() {
	all := int64(w.units)
	for !spin(min(arrival, w.patience), func() bool { return w.done.Load() == all }) {
		w.waiting.Swap(true) // as a store it might come after the load, in an emulator
		if w.done.Load() == all && w.waiting.CompareAndSwap(true, false) {
			return
		}
		<-w.arrived // sent by whoever has set waiting back, maybe for the job before
	}
}

// rouse wakes the first n helpers that are parked.
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

// lead is worker 0.
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

// help is worker i+1.
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

// spin returns whether ready became true within about so long. The loop is Go's,
// so that the collector can stop it anywhere.
func spin(patience time.Duration, ready func() bool) bool {
	const (
		polls   = 64                  // some microseconds
		fastest = 4 * time.Nanosecond // of a poll
	)
	var begun time.Time
	// The number of polls is bounded too: in the bubbles of testing/synctest the
	// clock stands still while anything runs.
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
