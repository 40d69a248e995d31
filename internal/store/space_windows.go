package store

import "golang.org/x/sys/windows"

// freeSpace returns the bytes that a user may still write on the disk of path.
func freeSpace(path string) (int64, bool) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}
