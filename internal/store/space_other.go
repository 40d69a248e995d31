//go:build !linux && !darwin && !freebsd && !windows

package store

// freeSpace is not known on this system.
func freeSpace(string) (int64, bool) { return 0, false }
