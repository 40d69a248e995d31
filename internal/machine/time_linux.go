package machine

import (
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// Processors returns the processor time that the process's control group and its ancestors allow:
// version 2's cpu.max, or version 1's cpu.cfs_quota_us and cpu.cfs_period_us
// (Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).
func Processors() Time { return processors(os.DirFS("/")) }

func processors(root fs.FS) Time {
	limit, t := math.Inf(1), noLimit
	for _, m := range mounts(root, "cpu") {
		for _, dir := range groups(root, m, "cpu") {
			if q := quota(root, dir, m.unified); q < limit {
				limit, t.By = q, "/"+dir+"/cpu.max"
				if !m.unified {
					t.By = "/" + dir + "/cpu.cfs_quota_us"
				}
			}
		}
	}
	if limit >= math.MaxInt32 {
		return noLimit
	}
	t.Limit = max(1, int(limit))
	return t
}

// quota returns the limit of one control group, in processors.
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
	time, err1 := strconv.ParseInt(numbers[0], 10, 64) // "max" or -1 if unlimited
	period, err2 := strconv.ParseInt(numbers[1], 10, 64)
	if err1 != nil || err2 != nil || time <= 0 || period <= 0 {
		return math.Inf(1)
	}
	return float64(time) / float64(period)
}
