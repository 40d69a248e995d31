// Package kernels holds the code that runs on NVIDIA GPUs, as PTX that the driver
// compiles for the device at hand. A family of kernels is a file in CUDA C++ beside this one,
// or one that gen writes itself, for a format of weights or for a cache; gen compiles them,
// and what is committed is what it writes.
//
// The base is for compute capability 8.0 and later. Hopper has its own form of
// each family, which runs on capability 9.0 and nothing else.
package kernels

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
)

//go:generate go run ./gen

// PTX is the text of a family for a device of that compute capability, which is 8.0
// or later.
func PTX(family string, major, minor int) ([]byte, error) {
	target := "sm_80"
	if major == 9 && minor == 0 {
		target = "sm_90a"
	}
	name := fmt.Sprintf("ptx/%s.%s.ptx.gz", family, target)
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("kernels: there is no family %q", family)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", name, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", name, err)
	}
	return text, nil
}
