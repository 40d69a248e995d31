//go:build !linux && !windows

package drivertest

func thread() int { return 0 }
