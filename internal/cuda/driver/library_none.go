//go:build nocuda || !((linux && (amd64 || arm64)) || (windows && amd64))

package driver

import "fmt"

func invoke(uintptr, []uintptr) uintptr { return uintptr(NotSupported) }

func findLibrary() (Lookup, error) {
	return nil, fmt.Errorf("%w: this build has no CUDA; use one for Linux (amd64, arm64) or Windows (amd64) without the tag nocuda", ErrNoDriver)
}
