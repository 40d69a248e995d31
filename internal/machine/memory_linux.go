package machine

import (
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// ReadMemory returns the memory by the kernel's figures, within the limits of the process's control
// group and its ancestors, of version 1 and 2 (Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst).
func ReadMemory() Memory { return readMemory(os.DirFS("/")) }

func readMemory(root fs.FS) Memory {
	var m Memory
	for name, n := range numbers(root, "proc/meminfo") {
		switch name {
		case "MemTotal:":
			m.Total = n << 10
		case "MemAvailable:":
			m.Free = n << 10
		}
	}
	for _, mount := range mounts(root, "memory") {
		files := memoryV1
		if mount.unified {
			files = memoryV2
		}
		for _, dir := range groups(root, mount, "memory") {
			for _, limit := range files.limits {
				m.bound(root, dir, limit, &files)
			}
		}
	}
	return m
}

// memoryFiles names the files of a control group with its limit and usage.
type memoryFiles struct {
	limits []string
	used   string
	cached []string // keys of memory.stat: memory that the kernel reclaims before it kills a process
}

var (
	memoryV1 = memoryFiles{[]string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", []string{"total_active_file", "total_inactive_file"}}
	memoryV2 = memoryFiles{[]string{"memory.max", "memory.high"}, "memory.current", []string{"active_file", "inactive_file"}}
)

// bound lowers m to the limit of a group. The usage of a group and its descendants counts, except
// the page cache.
func (m *Memory) bound(root fs.FS, dir, name string, files *memoryFiles) {
	limit, ok := number(root, dir+"/"+name)
	if !ok || m.Total > 0 && limit >= m.Total && limit >= 1<<60 {
		return
	}
	known := m.Free > 0 || m.Limit != ""
	if m.Total == 0 || limit < m.Total {
		m.Total, m.Limit = limit, "/"+dir+"/"+name
	}
	used, ok := number(root, dir+"/"+files.used)
	if !ok {
		used = 0
	}
	stat := numbers(root, dir+"/memory.stat")
	for _, name := range files.cached {
		used -= stat[name]
	}
	if free := max(0, limit-max(0, used)); !known || free < m.Free {
		m.Free, m.Limit = free, "/"+dir+"/"+name
	}
}

// number returns the number in a file, and false for "max" or no file.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n >= 0
}

// numbers returns the entries of a file of names and numbers.
func numbers(root fs.FS, name string) map[string]int64 {
	text, _ := fs.ReadFile(root, name)
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n >= 0 && n <= math.MaxInt64>>10 {
				all[f[0]] = n
			}
		}
	}
	return all
}
