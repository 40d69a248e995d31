package main

import "github.com/realizar/realizar/internal/bytesize"

// A byteSize is a flag's number of bytes: 8GiB, 512MiB, 1.5G, 4096.
type byteSize int64

// UnmarshalText reads a size.
func (s *byteSize) UnmarshalText(text []byte) error {
	n, err := bytesize.Parse(string(text))
	if err == nil {
		*s = byteSize(n)
	}
	return err
}
