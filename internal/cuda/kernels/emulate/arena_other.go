//go:build !linux

package emulate

import (
	"errors"
	"os"
)

func newArena() (*os.File, []byte, error) { return nil, nil, errors.ErrUnsupported }

func freeArena([]byte) {}

func addressOf([]byte) uintptr { return 0 }
