package cpu

import (
	"sync"
	"sync/atomic"
)

// workers are goroutines that share the work of one operation at a time. The
// caller is one of them.
type workers struct {
	n    int
	jobs []chan *job // of all but the caller
}

// A job is the range 0 <= i < n, taken piece by piece by whoever is free, so
// that one slow worker does not hold up the rest.
type job struct {
	n, piece int
	next     atomic.Int64
	run      func(worker, lo, hi int)
	done     sync.WaitGroup
	failed   atomic.Pointer[any]
}

// pieces is how many pieces each worker finds on average.
const pieces = 8

func newWorkers(n int) *workers {
	w := &workers{n: n}
	for i := range n - 1 {
		c := make(chan *job, 1)
		w.jobs = append(w.jobs, c)
		go func() {
			for j := range c {
				j.work(i + 1)
			}
		}()
	}
	return w
}

// work takes pieces until there are none.
func (j *job) work(worker int) {
	defer j.done.Done()
	defer func() {
		if r := recover(); r != nil {
			j.failed.Store(&r)
		}
	}()
	for {
		lo := int(j.next.Add(int64(j.piece))) - j.piece
		if lo >= j.n {
			return
		}
		j.run(worker, lo, min(j.n, lo+j.piece))
	}
}

// share cuts 0 <= i < n into pieces of a multiple of grain and has the workers
// call run for each; it returns when all is done. A panic of one becomes a panic
// of the caller.
func (w *workers) share(n, grain int, run func(worker, lo, hi int)) {
	helpers := min(w.n, (n+grain-1)/grain) - 1
	if helpers <= 0 {
		run(0, 0, n)
		return
	}
	piece := max(1, n/(w.n*pieces*grain)) * grain
	j := &job{n: n, piece: piece, run: run}
	j.done.Add(helpers + 1)
	for _, c := range w.jobs[:helpers] {
		c <- j
	}
	j.work(0)
	j.done.Wait()
	if r := j.failed.Load(); r != nil {
		panic(*r)
	}
}

func (w *workers) close() {
	for _, c := range w.jobs {
		close(c)
	}
}
