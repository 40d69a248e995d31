package main

import (
	"io"
	"os"
)

// read is what the file of that name holds, or all of standard input for "-".
func (a *app) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(name)
}
