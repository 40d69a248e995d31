//go:build nocuda

package driver_test

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
)

func TestOpenWithoutCUDA(t *testing.T) {
	const want = "no usable NVIDIA driver: this build has no CUDA; use one for Linux (amd64, arm64) or Windows (amd64) without the tag nocuda"
	if _, err := driver.Open(); !errors.Is(err, driver.ErrNoDriver) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
