package kvtransfer

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// The length of a key in bytes.
const (
	leastKey = 32
	mostKey  = 4096
)

// ReadKey reads the key in a file, without white space at its ends.
func ReadKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, mostKey+1))
	if err != nil {
		return nil, err
	}
	key := bytes.TrimSpace(data)
	if len(key) < leastKey || len(key) > mostKey {
		return nil, fmt.Errorf("the key in %s has %d bytes; want %d to %d random ones, such as those of `openssl rand -hex 32`", path, len(key), leastKey, mostKey)
	}
	return key, nil
}
