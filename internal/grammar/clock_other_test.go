//go:build !linux

package grammar_test

import "time"

var started = time.Now()

// cpu is the time since the tests began: other systems do not tell a thread's own.
func cpu() time.Duration { return time.Since(started) }
