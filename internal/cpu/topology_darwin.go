package cpu

import (
	"math"

	"golang.org/x/sys/unix"
)

// readTopology counts the performance cores, or all cores if they are alike.
func readTopology() topology {
	t := topology{limit: math.MaxInt32}
	for _, name := range []string{"hw.perflevel0.physicalcpu", "hw.physicalcpu"} {
		if n, err := unix.SysctlUint32(name); err == nil && n > 0 && n <= maxThreads {
			t.cores = make([][]int, n)
			break
		}
	}
	return t
}

// settle does nothing: the system cannot bind threads to processors.
func settle([]int) {}
