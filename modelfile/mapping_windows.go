//go:build windows

package modelfile

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps size bytes of f, which are not zero, for reading.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	// A size of zero stands for the size of the file, and the view keeps the
	// section object alive after its handle is closed.
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer windows.CloseHandle(section) //nolint:errcheck // nothing is left to undo
	addr, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, err
	}
	// The address is outside the Go heap; reading it through a pointer to the
	// variable is the form of this conversion that vet knows to be one.
	base := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(base), size), func() error { return windows.UnmapViewOfFile(addr) }, nil
}

// letGo does nothing: the system trims what is mapped by itself.
func letGo([]byte) {}
