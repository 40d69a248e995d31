package cpu

import (
	"runtime"
	"sync"
)

// maxThreads is more than any machine has use for.
const maxThreads = 1024

// Threads is how many threads the backend of New(n) uses: n up to a bound, or for
// 0 and less one per processor core, within what the system lets the process use
// (its processor affinity, and on Linux the processor time of its control
// group, rounded down).
func Threads(n int) int {
	if n > 0 {
		return min(n, maxThreads)
	}
	m := thisMachine()
	return max(1, min(len(m.cores), m.limit, maxThreads))
}

// Cores is the number of processor cores that the process may use, each counted
// once however many threads it runs at a time.
func Cores() int { return len(thisMachine().cores) }

// A topology is what the process may use of the machine.
type topology struct {
	cores [][]int // the logical processors of each core, or nil where that is not known
	limit int     // processors' worth of time that the process gets
}

// thisMachine is read once, before any thread is bound to a processor.
var thisMachine = sync.OnceValue(func() topology {
	t := readTopology()
	if len(t.cores) == 0 {
		t.cores = make([][]int, runtime.NumCPU())
	}
	return t
})

// places are the logical processors for each of n workers: those of a core each,
// or one each. They are nil when n is another number than that of cores or logical
// processors: workers bound to part of a machine would meet there with those of
// other processes that do the same.
func (t topology) places(n int) [][]int {
	var single [][]int
	for _, core := range t.cores {
		for i := range core {
			single = append(single, core[i:i+1])
		}
	}
	switch {
	case len(single) == 0 || t.limit < n:
		return nil
	case n == len(t.cores):
		return t.cores
	case n == len(single):
		return single
	}
	return nil
}
