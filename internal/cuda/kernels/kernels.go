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
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
)

//go:generate go run ./gen

// PTX returns the text of a family for a device of the given compute capability, which must be 8.0
// or later.
func PTX(family string, major, minor int) ([]byte, error) {
	name := fmt.Sprintf("ptx/%s.%s.ptx.gz", family, targetOf(major, minor))
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

// targetOf returns the target of the families for a device of that compute capability.
func targetOf(major, minor int) string {
	if major == 9 && minor == 0 {
		return "sm_90a"
	}
	return "sm_80"
}

// Digest returns a digest of the families whose names match one of the patterns of [path.Match], for
// a device of that compute capability.
func Digest(major, minor int, patterns ...string) (string, error) {
	sum := sha256.New()
	for _, p := range patterns {
		names, err := fs.Glob(files, fmt.Sprintf("ptx/%s.%s.ptx.gz", p, targetOf(major, minor)))
		if err != nil {
			return "", fmt.Errorf("kernels: %w", err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return "", fmt.Errorf("kernels: %w", err)
			}
			sum.Write(fmt.Appendf(nil, "%s %d\n", name, len(data)))
			sum.Write(data)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
