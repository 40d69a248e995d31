//go:build !linux

package grammar_test

import "time"

var started = time.Now()

// cpu returns the time since the tests began. Other systems do not report a thread's processor
// time.
func cpu() time.Duration { return time.Since(started) }
