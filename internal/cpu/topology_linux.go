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
	if err := unix.SchedGetaffinity(0, &set); err != nil { // more processors than the set holds, say
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

// coresOf groups logical processors by core, as the kernel's
// Documentation/ABI/stable/sysfs-devices-system-cpu has it. Where it says nothing, each is a core.
func coresOf(root fs.FS, processors []int) [][]int {
	var cores [][]int
	known := map[string]int{} // core by the list of its logical processors
	for _, c := range processors {
		siblings := ""
		for _, name := range []string{"core_cpus_list", "thread_siblings_list"} { // the second until Linux 5.3
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

// settle binds the calling goroutine to a thread, and the thread to the given logical
// processors, for as long as the goroutine lives. Where the system does not allow
// it, all stays as it was.
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
