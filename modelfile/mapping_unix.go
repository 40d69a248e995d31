//go:build unix

package modelfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of f for reading. size must not be zero.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// letGo tells the system that it may drop data, which must be whole pages of a mapping.
func letGo(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) }
