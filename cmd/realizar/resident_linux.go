package main

import (
	"os"
	"strconv"
	"strings"
)

// residentMemory returns the resident memory of the process, now and at most, in bytes.
func residentMemory() (now, peak *int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			continue
		}
		bytes := kib << 10
		switch f[0] {
		case "VmRSS:":
			now = &bytes
		case "VmHWM:":
			peak = &bytes
		}
	}
	return now, peak
}
