package main

import (
	"fmt"
	"strconv"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/bytesize"
)

// A byteSize is a flag's number of bytes: 8GiB, 512MiB, 1.5G, 4096.
type byteSize int64

// UnmarshalText parses a size.
func (s *byteSize) UnmarshalText(text []byte) error {
	n, err := bytesize.Parse(string(text))
	if err == nil {
		*s = byteSize(n)
	}
	return err
}

// String formats a size for UnmarshalText, in the largest unit that gives a whole number.
func (s byteSize) String() string {
	for _, u := range []struct {
		size byteSize
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if s > 0 && s%u.size == 0 {
			return fmt.Sprintf("%d%s", s/u.size, u.name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// A memoryLimit is a flag's part of a device's memory: 8GiB, 0.5, 50%.
type memoryLimit realizar.MemoryLimit

// UnmarshalText parses a limit.
func (l *memoryLimit) UnmarshalText(text []byte) error {
	limit, err := realizar.ParseMemoryLimit(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is not an amount of device memory; want a number of bytes, such as 8GiB, or a fraction, such as 0.5 or 50%%", text)
	}
	*l = memoryLimit(limit)
	return nil
}

// String formats a limit for UnmarshalText.
func (l memoryLimit) String() string {
	if l.Bytes > 1 { // 1 byte stands for all of the memory
		return byteSize(l.Bytes).String()
	}
	return realizar.MemoryLimit(l).String()
}
