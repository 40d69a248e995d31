// Package kernels holds the code that runs on NVIDIA GPUs, as PTX that the driver compiles for the
// device. A family of kernels is a CUDA C++ file in this folder, or is written by gen for a weight
// format or a cache format. gen compiles the families; the committed PTX is its output.
//
// The base is for compute capability 8.0 and later. Each family also has a form for Hopper, which
// runs only on capability 9.0.
package kernels

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
)

//go:generate go run ./gen

// PTX returns the text of a family for a device of the given compute capability, which must be 8.0
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
