//go:build !nocuda && ((linux && (amd64 || arm64)) || (windows && amd64))

package driver

import "github.com/ebitengine/purego"

// invoke calls the C function at fn, none of whose parameters is a float.
func invoke(fn uintptr, args []uintptr) uintptr {
	result, _, _ := purego.SyscallN(fn, args...)
	return result
}
