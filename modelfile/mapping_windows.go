//go:build windows

package modelfile

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps size bytes of f for reading. size must not be zero.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	// A size of zero means the size of the file. The view keeps the section object alive after its
	// handle is closed.
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer windows.CloseHandle(section) //nolint:errcheck // nothing is left to undo
	addr, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, err
	}
	// The address is outside the Go heap. Go vet accepts this form of the conversion: reading the
	// address through a pointer to the variable.
	base := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(base), size), func() error { return windows.UnmapViewOfFile(addr) }, nil
}

// letGo does nothing: the system trims mappings by itself.
func letGo([]byte) {}
