package cpu

import (
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/machine"
)

func readTopology() topology {
	root := os.DirFS("/")
	t := topology{limit: machine.Processors().Limit}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil { // probably more processors than the set holds
		return t
	}
	var allowed []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			allowed = append(allowed, c)
		}
	}
	t.cores = coresOf(root, allowed)
	return t
}

// coresOf groups logical processors by core (Documentation/ABI/stable/sysfs-devices-system-cpu of
// the kernel). If the system does not tell, each is a core.
func coresOf(root fs.FS, processors []int) [][]int {
	var cores [][]int
	known := map[string]int{} // index of a core by the list of its logical processors
	for _, c := range processors {
		siblings := ""
		for _, name := range []string{"core_cpus_list", "thread_siblings_list"} { // the second up to Linux 5.3
			text, err := fs.ReadFile(root, "sys/devices/system/cpu/cpu"+strconv.Itoa(c)+"/topology/"+name)
			if siblings = strings.TrimSpace(string(text)); err == nil && siblings != "" {
				break
			}
		}
		if i, ok := known[siblings]; ok && siblings != "" {
			cores[i] = append(cores[i], c)
			continue
		}
		known[siblings] = len(cores)
		cores = append(cores, []int{c})
	}
	return cores
}

// settle locks the calling goroutine to its thread, and binds the thread to the given logical
// processors, for the life of the goroutine. It has no effect if the system refuses.
func settle(processors []int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	for _, c := range processors {
		set.Set(c)
	}
	if unix.SchedSetaffinity(0, &set) != nil {
		runtime.UnlockOSThread()
	}
}
