package machine

import (
	"math"
	"testing"
	"testing/fstest"
)

func files(pairs ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		root[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return root
}

func TestProcessorLimit(t *testing.T) {
	const (
		v2     = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1     = "33 32 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		v1set  = "34 32 0:29 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
		within = "33 32 0:28 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		mounts = "proc/self/mountinfo"
		groups = "proc/self/cgroup"
		dir    = "sys/fs/cgroup/"
		quota  = "/cpu.cfs_quota_us"
		period = "/cpu.cfs_period_us"
	)
	for _, test := range []struct {
		name string
		root fstest.MapFS
		want int
	}{
		{"nothing known", files(), math.MaxInt32},
		{"no limit", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "max 100000\n"), math.MaxInt32},
		{"whole", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "400000 100000\n"), 4},
		{"rounded down", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "290000 100000\n"), 2},
		{"at least one", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "1000 100000\n"), 1},
		{"of an ancestor", files(mounts, v2, groups, "0::/user/app\n", dir+"user/cpu.max", "300000 100000\n", dir+"user/app/cpu.max", "max 100000\n"), 3},
		{"of the least of them", files(mounts, v2, groups, "0::/user/app\n", dir+"user/cpu.max", "300000 100000\n", dir+"user/app/cpu.max", "200000 100000\n"), 2},
		{"of another group", files(mounts, v2, groups, "0::/user\n", dir+"other/cpu.max", "100000 100000\n"), math.MaxInt32},
		{"outside the mount", files(mounts, v2, groups, "0::/../../far\n", dir+"cpu.max", "200000 100000\n"), 2},
		{"version 1", files(mounts, v1set+v1, groups, "4:cpu,cpuacct:/a\n", dir+"cpu,cpuacct/a"+quota, "200000\n", dir+"cpu,cpuacct/a"+period, "100000\n"), 2},
		{"version 1 without a limit", files(mounts, v1, groups, "4:cpu,cpuacct:/a\n", dir+"cpu,cpuacct/a"+quota, "-1\n", dir+"cpu,cpuacct/a"+period, "100000\n"), math.MaxInt32},
		{"version 1 within a container", files(mounts, within, groups, "4:cpu,cpuacct:/docker/1\n", dir+"cpu,cpuacct"+quota, "300000\n", dir+"cpu,cpuacct"+period, "100000\n"), 3},
		{"both versions", files(mounts, v1+v2, groups, "4:cpu,cpuacct:/a\n0::/a\n", dir+"cpu,cpuacct/a"+quota, "500000\n", dir+"cpu,cpuacct/a"+period, "100000\n"), 5},
		{"no number", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "many of them\n"), math.MaxInt32},
		{"a period of 0", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "100000 0\n"), math.MaxInt32},
		{"a huge quota", files(mounts, v2, groups, "0::/\n", dir+"cpu.max", "9223372036854775807 1\n"), math.MaxInt32},
		{"broken lists", files(mounts, "- -\n30 25 - cgroup2\n"+v2, groups, "0::\n:\n0:\n", dir+"cpu.max", "200000 100000\n"), 2},
	} {
		if got := processors(test.root).Limit; got != test.want {
			t.Errorf("%s: %d processors, want %d", test.name, got, test.want)
		}
	}
}
