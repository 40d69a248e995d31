package modelfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"unsafe"
)

// A mapping is a weights file in memory. If the system supports it, pages are read when they are
// first touched and dropped under memory pressure. Reading a file that has been truncated since
// causes a fault; see [File.Guard].
type mapping struct {
	path     string
	data     []byte
	unmap    func() error
	modified int64 // time of modification, in nanoseconds since 1970
	resident bool  // the system cannot drop the pages
}

// openMapping maps the whole of a regular file.
func openMapping(path string) (*mapping, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	size := info.Size()
	// A mapping outlives its file descriptor.
	defer f.Close() //nolint:errcheck // nothing was written
	if size == 0 {
		return nil, fmt.Errorf("modelfile: %s: %w: the file is empty", path, ErrNotModel)
	}
	if size > math.MaxInt {
		return nil, fmt.Errorf("modelfile: %s: %w: %d bytes are more than this machine can address",
			path, ErrUnsupported, size)
	}
	data, unmap, err := mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("modelfile: %s: mapping %d bytes: %w", path, size, err)
	}
	return &mapping{path: path, data: data, unmap: sync.OnceValue(unmap), modified: info.ModTime().UnixNano()}, nil
}

// close unmaps the file. Only the first call has an effect.
func (m *mapping) close() error {
	if err := m.unmap(); err != nil {
		return fmt.Errorf("modelfile: %s: unmapping: %w", m.path, err)
	}
	return nil
}

// letGo tells the system that it may drop the whole pages of data. It reports whether data is a
// view of the mapping.
func (m *mapping) letGo(data []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	if at < start || at-start > uintptr(len(m.data)) || uintptr(len(data)) > uintptr(len(m.data))-(at-start) {
		return false
	}
	page := os.Getpagesize()
	lo, hi := int(at-start), int(at-start)+len(data)
	lo = (lo + page - 1) / page * page // the mapping is page-aligned
	if hi < len(m.data) {
		hi = hi / page * page
	}
	if lo < hi && !m.resident {
		letGo(m.data[lo:hi])
	}
	return true
}

// openRegular opens a file for reading and returns its information. It follows links, because hub
// caches consist of them. It rejects anything but regular files before opening them, because opening
// a named pipe waits for a writer.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		if _, linkErr := os.Lstat(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("modelfile: %s: %w: the link's target does not exist; is the download complete?",
				path, ErrNotModel)
		}
		return nil, nil, fmt.Errorf("modelfile: %w", err)
	}
	if err := checkRegular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("modelfile: %w", err)
	}
	info, err = f.Stat()
	if err == nil {
		err = checkRegular(path, info)
	}
	if err != nil {
		f.Close() //nolint:errcheck // the first error is the one to tell
		return nil, nil, err
	}
	return f, info, nil
}

func checkRegular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	kind := "a special file"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("modelfile: %s: %w: it is %s, not a regular file", path, ErrNotModel, kind)
}
