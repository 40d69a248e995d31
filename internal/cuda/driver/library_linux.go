//go:build !nocuda && (amd64 || arm64)

package driver

import (
	"fmt"
	"runtime"

	"github.com/ebitengine/purego"
)

// libraryPaths are tried in order: first the loader's own search, then the folders of WSL and
// containers, in case the loader is not configured for them.
func libraryPaths() []string {
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return []string{
		"libcuda.so.1",
		"libcuda.so",
		"/usr/lib/wsl/lib/libcuda.so.1",
		"/usr/local/nvidia/lib64/libcuda.so.1",
		"/usr/lib/" + triple + "/libcuda.so.1",
		"/usr/lib64/libcuda.so.1",
	}
}

func findLibrary() (Lookup, error) {
	var first error
	for _, path := range libraryPaths() {
		library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return func(symbol string) (uintptr, error) { return purego.Dlsym(library, symbol) }, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("%w: %w; install NVIDIA's driver, or give the container its devices (--gpus all), or let LD_LIBRARY_PATH name the library's folder", ErrNoDriver, first)
}
