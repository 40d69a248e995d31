package cpu

import "sync"

// workers are goroutines that share the work of one operation at a time. The
// caller is one of them.
type workers struct {
	n    int
	jobs []chan job // of all but the caller
}

type job struct {
	lo, hi, worker int
	run            func(worker, lo, hi int)
	done           *sync.WaitGroup
	failed         *any
}

func newWorkers(n int) *workers {
	w := &workers{n: n}
	for range n - 1 {
		c := make(chan job, 1)
		w.jobs = append(w.jobs, c)
		go func() {
			for j := range c {
				j.do()
			}
		}()
	}
	return w
}

func (j *job) do() {
	defer j.done.Done()
	defer func() {
		if r := recover(); r != nil {
			*j.failed = r
		}
	}()
	j.run(j.worker, j.lo, j.hi)
}

// share cuts 0 <= i < n into one range per worker, none smaller than grain but
// the last, and calls run for each; it returns when all have returned. A panic
// of one becomes a panic of the caller.
func (w *workers) share(n, grain int, run func(worker, lo, hi int)) {
	parts := min(w.n, max(1, n/max(1, grain)))
	if parts <= 1 {
		run(0, 0, n)
		return
	}
	var done sync.WaitGroup
	failed := make([]any, parts)
	done.Add(parts - 1)
	for p := 1; p < parts; p++ {
		w.jobs[p-1] <- job{p * n / parts, (p + 1) * n / parts, p, run, &done, &failed[p]}
	}
	func() {
		defer done.Wait()
		run(0, 0, n/parts)
	}()
	for _, f := range failed {
		if f != nil {
			panic(f)
		}
	}
}

func (w *workers) close() {
	for _, c := range w.jobs {
		close(c)
	}
}
