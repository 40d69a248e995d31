package cpu

import (
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func readTopology() topology {
	root := os.DirFS("/")
	t := topology{limit: processorLimit(root)}
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

// processorLimit is how much processor time the process's control group and those
// around it allow, in whole processors and at least one: cgroup version 2's cpu.max, or
// version 1's cpu.cfs_quota_us and cpu.cfs_period_us (Documentation/admin-guide/cgroup-v2.rst,
// Documentation/scheduler/sched-bwc.rst).
func processorLimit(root fs.FS) int {
	limit := math.Inf(1)
	for _, m := range cgroupMounts(root) {
		for _, dir := range cgroupDirs(root, m) {
			limit = min(limit, quota(root, dir, m.unified))
		}
	}
	if limit >= math.MaxInt32 {
		return math.MaxInt32
	}
	return max(1, int(limit))
}

// quota is the limit of one control group, in processors.
func quota(root fs.FS, dir string, unified bool) float64 {
	var numbers []string
	if unified {
		text, _ := fs.ReadFile(root, dir+"/cpu.max")
		numbers = strings.Fields(string(text))
	} else {
		for _, name := range []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"} {
			text, _ := fs.ReadFile(root, dir+"/"+name)
			numbers = append(numbers, strings.Fields(string(text))...)
		}
	}
	if len(numbers) != 2 {
		return math.Inf(1)
	}
	time, err1 := strconv.ParseInt(numbers[0], 10, 64) // "max" or -1 without a limit
	period, err2 := strconv.ParseInt(numbers[1], 10, 64)
	if err1 != nil || err2 != nil || time <= 0 || period <= 0 {
		return math.Inf(1)
	}
	return float64(time) / float64(period)
}

// A cgroupMount is a mounted hierarchy of control groups that limits processor time.
type cgroupMount struct {
	unified     bool // version 2
	group, path string
}

// cgroupMounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)).
func cgroupMounts(root fs.FS) []cgroupMount {
	text, _ := fs.ReadFile(root, "proc/self/mountinfo")
	var mounts []cgroupMount
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		m := cgroupMount{unified: g[0] == "cgroup2", group: unescape(f[3]), path: unescape(f[4])}
		if m.unified || g[0] == "cgroup" && contains(g[2], "cpu") {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// cgroupDirs are the folders of the process's group and of those around it, as far
// as they are mounted.
func cgroupDirs(root fs.FS, m cgroupMount) []string {
	text, _ := fs.ReadFile(root, "proc/self/cgroup") // cgroups(7)
	var dirs []string
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || m.unified != (f[0] == "0" && f[1] == "") || !m.unified && !contains(f[1], "cpu") {
			continue
		}
		// What is mounted may be a group further down than the root.
		rest, ok := strings.CutPrefix(f[2], strings.TrimSuffix(m.group, "/"))
		if !ok || rest != "" && rest[0] != '/' {
			rest = ""
		}
		base := strings.Trim(m.path, "/")
		for dir := strings.TrimSuffix(rest, "/"); ; dir = dir[:strings.LastIndexByte(dir, '/')] {
			dirs = append(dirs, base+dir)
			if dir == "" {
				break
			}
		}
	}
	return dirs
}

// contains reports whether a list with commas has a word.
func contains(list, word string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if s == word {
			return true
		}
	}
	return false
}

// unescape is a field of mountinfo, where blanks and backslashes are octal.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

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
