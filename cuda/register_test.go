//go:build !nocuda

package cuda

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/mesh"
)

// A driver that is present but fails is not reported as absent.
func TestPresent(t *testing.T) {
	missing := func(string) (uintptr, error) { return 0, errors.New("no such library") }
	if _, err := driver.OpenLibrary(missing); !errors.Is(present(err), backends.ErrAbsent) || !errors.Is(present(err), driver.ErrNoDriver) {
		t.Errorf("no driver: %v", err)
	}
	for what, options := range map[string]drivertest.Options{
		"old":        {Version: 11080},
		"not at all": {Init: driver.SystemDriverMismatch},
		"no device":  {Init: driver.NoDevice},
	} {
		fake := drivertest.New(t, options)
		if _, err := driver.OpenLibrary(fake.Lookup); err == nil || errors.Is(present(err), backends.ErrAbsent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := present(cuda.ErrCapability); errors.Is(err, backends.ErrAbsent) {
		t.Errorf("an old device: %v", err)
	}
}

// GPUs are counted without a context on one; without a driver there are none.
func TestCount(t *testing.T) {
	fake := drivertest.New(t, drivertest.Options{Devices: []drivertest.Device{{Name: "a", Memory: 1 << 30}, {Name: "b", Memory: 1 << 30}, {Name: "c", Memory: 1 << 30}}})
	opens := func(d *driver.Driver, err error) func() (*driver.Driver, error) {
		return func() (*driver.Driver, error) { return d, err }
	}
	if n := count(opens(fake.Driver(), nil)); n != 3 {
		t.Errorf("%d GPUs of 3", n)
	}
	if n := count(opens(nil, driver.ErrNoDriver)); n != 0 {
		t.Errorf("%d GPUs without a driver", n)
	}
}

// GPUs that do not reach each other's memory divide a model by layers, unless another split is wanted.
func TestSplitOf(t *testing.T) {
	for _, c := range []struct {
		wanted mesh.Split
		apart  error
		want   mesh.Split
	}{
		{mesh.Auto, nil, mesh.ByTensor}, {mesh.Auto, driver.ErrNoPeer, mesh.ByLayer}, {mesh.ByTensor, driver.ErrNoPeer, mesh.ByTensor}, {mesh.ByLayer, nil, mesh.ByLayer},
	} {
		if got := splitOf(c.wanted, c.apart); got != c.want {
			t.Errorf("split %v of GPUs that are apart for %v: %v, want %v", c.wanted, c.apart, got, c.want)
		}
	}
}

// Tables are in realizar's folder.
func TestTables(t *testing.T) {
	t.Setenv("REALIZAR_HOME", "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	if got, want := tables(), filepath.FromSlash("/cache/realizar/tune"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Setenv("REALIZAR_HOME", "/realizar")
	t.Setenv("HOME", "")
	if got, want := tables(), filepath.FromSlash("/realizar/tune"); got != want {
		t.Errorf("without a home: %s, want %s", got, want)
	}
}

func TestRegistered(t *testing.T) {
	if err := backends.All.Check(backends.Choice{Name: "cuda:1"}); err != nil {
		t.Error(err)
	}
}
