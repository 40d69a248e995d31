package grammar_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the processor time of this thread. The goroutine must be locked to the thread.
func cpu() time.Duration {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
