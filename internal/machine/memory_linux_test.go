package machine

import (
	"testing"
	"testing/fstest"
)

func TestReadMemory(t *testing.T) {
	const (
		v2     = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1     = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		v1cpu  = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		within = "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		mounts = "proc/self/mountinfo"
		groups = "proc/self/cgroup"
		info   = "proc/meminfo"
		// 4,000 KiB, 3,000 of them available.
		machine = "MemTotal:           4000 kB\nMemFree:            1000 kB\nMemAvailable:       3000 kB\nHugePages_Total:       0\n"
		dir     = "sys/fs/cgroup/"
		kib     = 1 << 10
	)
	for _, test := range []struct {
		name        string
		root        fstest.MapFS
		total, free int64
		limit       string
	}{
		{"nothing known", files(), 0, 0, ""},
		{"no groups", files(info, machine), 4000 * kib, 3000 * kib, ""},
		{"no limit", files(info, machine, mounts, v2, groups, "0::/a\n", dir+"a/memory.max", "max\n", dir+"a/memory.current", "1024\n"), 4000 * kib, 3000 * kib, ""},
		{"of the group", files(info, machine, mounts, v2, groups, "0::/a\n", dir+"a/memory.max", "1024000\n", dir+"a/memory.current", "24000\n"),
			1024000, 1000000, "/" + dir + "a/memory.max"},
		{"of an ancestor", files(info, machine, mounts, v2, groups, "0::/system.slice/app.service/worker\n",
			dir+"system.slice/app.service/memory.max", "600000\n", dir+"system.slice/app.service/memory.current", "100000\n",
			dir+"system.slice/app.service/worker/memory.max", "max\n"), 600000, 500000, "/" + dir + "system.slice/app.service/memory.max"},
		{"of the ancestor that others fill", files(info, machine, mounts, v2, groups, "0::/pod/one\n",
			dir+"pod/memory.max", "2000000\n", dir+"pod/memory.current", "1900000\n",
			dir+"pod/one/memory.max", "1000000\n", dir+"pod/one/memory.current", "10000\n"), 1000000, 100000, "/" + dir + "pod/memory.max"},
		{"by memory.high", files(info, machine, mounts, v2, groups, "0::/a\n", dir+"a/memory.max", "max\n", dir+"a/memory.high", "500000\n", dir+"a/memory.current", "0\n"),
			500000, 500000, "/" + dir + "a/memory.high"},
		{"files do not count", files(info, machine, mounts, v2, groups, "0::/a\n", dir+"a/memory.max", "1000000\n", dir+"a/memory.current", "900000\n",
			dir+"a/memory.stat", "anon 100000\nfile 790000\ninactive_file 500000\nactive_file 250000\n"), 1000000, 850000, "/" + dir + "a/memory.max"},
		{"used up", files(info, machine, mounts, v2, groups, "0::/a\n", dir+"a/memory.max", "1000\n", dir+"a/memory.current", "2000\n"), 1000, 0, "/" + dir + "a/memory.max"},
		{"used up within a group that is not", files(info, machine, mounts, v2, groups, "0::/a/b\n", dir+"a/memory.max", "5000\n", dir+"a/memory.current", "2000\n",
			dir+"a/b/memory.max", "1000\n", dir+"a/b/memory.current", "1000\n"), 1000, 0, "/" + dir + "a/b/memory.max"},
		{"of another group", files(info, machine, mounts, v2, groups, "0::/a\n", dir+"b/memory.max", "1000\n"), 4000 * kib, 3000 * kib, ""},
		{"more than there is", files(info, machine, mounts, v2, groups, "0::/\n", dir+"memory.max", "1099511627776\n", dir+"memory.current", "1\n"), 4000 * kib, 3000 * kib, ""},
		{"version 1", files(info, machine, mounts, v1cpu+v1+hybrid, groups, "4:memory:/a/b\n1:cpu:/\n0::/\n",
			dir+"memory/a/memory.limit_in_bytes", "700000\n", dir+"memory/a/memory.usage_in_bytes", "500000\n",
			dir+"memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 300000\ntotal_active_file 100000\n",
			dir+"memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"), 700000, 600000, "/" + dir + "memory/a/memory.limit_in_bytes"},
		{"version 1 without a limit", files(info, machine, mounts, v1, groups, "4:memory:/a\n", dir+"memory/a/memory.limit_in_bytes", "9223372036854771712\n",
			dir+"memory/a/memory.usage_in_bytes", "500\n"), 4000 * kib, 3000 * kib, ""},
		{"version 1 within a container", files(info, machine, mounts, within, groups, "4:memory:/docker/1\n", dir+"memory/memory.limit_in_bytes", "300000\n"),
			300000, 300000, "/" + dir + "memory/memory.limit_in_bytes"},
		{"no number", files(info, machine, mounts, v2, groups, "0::/\n", dir+"memory.max", "lots\n"), 4000 * kib, 3000 * kib, ""},
	} {
		got := readMemory(test.root)
		if want := (Memory{test.total, test.free, test.limit}); got != want {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
	}
}
