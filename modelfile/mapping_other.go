//go:build !unix && !windows

package modelfile

import (
	"io"
	"os"
)

// mapFile reads size bytes of f into memory, on systems that cannot map files.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

// letGo does nothing: the data is in ordinary memory.
func letGo([]byte) {}
