//go:build !nocuda && ((linux && (amd64 || arm64)) || (windows && amd64))

package drivertest

import "github.com/ebitengine/purego"

const native = true

func newCallback(f any) uintptr { return purego.NewCallback(f) }

// hollow returns the address of a C function that does nothing and returns 0.
var hollow uintptr
