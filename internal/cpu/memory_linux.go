package cpu

import (
	"os"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// memory reads what the kernel says, within the limit of the process's cgroup
// (version 2).
func memory() plan.MemoryInfo {
	var m plan.MemoryInfo
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(info)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			m.Total = kib << 10
		case "MemAvailable:":
			m.Free = kib << 10
		}
	}
	if limit, ok := cgroup("memory.max"); ok && limit < m.Total {
		m.Total = limit
		if used, ok := cgroup("memory.current"); ok {
			m.Free = min(m.Free, max(0, limit-used))
		}
	}
	return m
}

func cgroup(file string) (int64, bool) {
	data, err := os.ReadFile("/sys/fs/cgroup/" + file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}
