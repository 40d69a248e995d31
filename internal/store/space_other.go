//go:build !linux && !darwin && !freebsd && !windows

package store

// freeSpace is not known here.
func freeSpace(string) (int64, bool) { return 0, false }
