package grammar_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu is what this thread has computed, whatever else the machine does. The goroutine must be
// locked to it.
func cpu() time.Duration {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
