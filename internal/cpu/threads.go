package cpu

import (
	"runtime"
	"sync"
)

// maxThreads bounds the number of threads; no machine can use more.
const maxThreads = 1024

// Threads returns the number of threads that the backend of New(n) uses: n, up to a bound. If n is
// 0 or negative, it is one per processor core that the system lets the process use, by its
// processor affinity and, on Linux, by the processor time of its control group, rounded down.
func Threads(n int) int {
	if n > 0 {
		return min(n, maxThreads)
	}
	m := thisMachine()
	return max(1, min(len(m.cores), m.limit, maxThreads))
}

// Cores returns the number of processor cores that the process may use, without counting hardware
// threads.
func Cores() int { return len(thisMachine().cores) }

// A topology is the part of the machine that the process may use.
type topology struct {
	cores [][]int // logical processors of each core, or nil if unknown
	limit int     // processor time that the process gets, in processors
}

// thisMachine must be read before any thread is bound to a processor.
var thisMachine = sync.OnceValue(func() topology {
	t := readTopology()
	if len(t.cores) == 0 {
		t.cores = make([][]int, runtime.NumCPU())
	}
	return t
})

// places returns the logical processors of each of n workers: those of one core each, or one each.
// It is nil if n is neither the number of cores nor that of logical processors: workers bound to a
// part of the machine would share it with other processes that do the same.
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
