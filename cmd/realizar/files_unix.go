//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles returns how many files the process may have open. The runtime has raised the limit as
// far as the system allows.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(l.Cur)
}
