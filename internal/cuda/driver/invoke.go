//go:build !nocuda && ((linux && (amd64 || arm64)) || (windows && amd64))

package driver

import "github.com/ebitengine/purego"

// invoke calls the C function at fn. None of its parameters may be a float.
func invoke(fn uintptr, args []uintptr) uintptr {
	result, _, _ := purego.SyscallN(fn, args...)
	return result
}
