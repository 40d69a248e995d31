package drivertest

import "syscall"

func thread() int { return syscall.Gettid() }
