package drivertest

import "golang.org/x/sys/windows"

func thread() int { return int(windows.GetCurrentThreadId()) }
