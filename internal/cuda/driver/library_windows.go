//go:build !nocuda && amd64

package driver

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// findLibrary looks only in the system folder, so that no file next to the program can pose as the
// driver.
func findLibrary() (Lookup, error) {
	library := windows.NewLazySystemDLL("nvcuda.dll")
	if err := library.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w; install NVIDIA's driver", ErrNoDriver, err)
	}
	return func(symbol string) (uintptr, error) {
		return windows.GetProcAddress(windows.Handle(library.Handle()), symbol)
	}, nil
}
