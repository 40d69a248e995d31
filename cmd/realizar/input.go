package main

import (
	"io"
	"os"
)

// read returns the contents of a file, or of standard input for "-".
func (a *app) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(name)
}
