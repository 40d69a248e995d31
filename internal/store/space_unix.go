//go:build linux || darwin || freebsd

package store

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that a user may still write on the disk of path.
func freeSpace(path string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
