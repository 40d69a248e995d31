//go:build !nocuda

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/store"
)

func init() {
	backends.Register(backends.Kind{Name: "cuda", Several: lower.MostParts, Count: func() int { return count(driver.Open) }, Parallel: 64, Chunk: 4096, Gap: 40 * time.Millisecond, Open: open})
}

// count returns how many GPUs the driver lists; 0 if it cannot be used.
func count(open func() (*driver.Driver, error)) int {
	d, err := open()
	if err != nil {
		return 0
	}
	all, err := d.Devices()
	if err != nil {
		return 0
	}
	return len(all)
}

func open(o backends.Options) (backends.Backend, error) {
	if len(o.Others) > 0 {
		return openGroup(o)
	}
	b, err := cuda.Open(cuda.Options{Device: o.Index, Tables: tables()})
	if err != nil {
		return nil, present(err)
	}
	return b, nil
}

// tables returns the folder of the user's tables of measured kernels, or "" if there is none.
func tables() string {
	home, err := os.UserHomeDir()
	if err != nil && os.Getenv("REALIZAR_HOME") == "" && os.Getenv("XDG_CACHE_HOME") == "" {
		return ""
	}
	return filepath.Join(store.FromEnvironment(os.Getenv, home).Own, "tune")
}

// present wraps err with backends.Absent if the system has no NVIDIA driver, and so is not expected
// to have a GPU. An error from a driver that was called stays as it is.
func present(err error) error {
	var call *driver.Error
	if errors.Is(err, driver.ErrNoDriver) && !errors.As(err, &call) {
		return backends.Absent(err)
	}
	return err
}
