//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles is how many files the process may have open. The runtime has raised the number
// as far as the system allows.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(l.Cur)
}
