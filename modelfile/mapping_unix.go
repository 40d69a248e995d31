//go:build unix

package modelfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of f, which are not zero, for reading.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// letGo says that data, of whole pages of a mapping, is not needed for now.
func letGo(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) }
