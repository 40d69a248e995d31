package driver

import (
	"fmt"
	"sync"
)

// oldest is the first version that has all functions, in the form of cuDriverGetVersion.
const oldest = Version(12010)

// A Version is a CUDA version: 1000 times the major version plus 10 times the minor version.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// A Driver is the loaded driver library.
type Driver struct {
	version Version
	address [functions]uintptr
	host    hostMemory

	mu sync.Mutex // held during calls
	caller
}

// A Lookup returns the address of a C function by its symbol.
type Lookup func(symbol string) (uintptr, error)

var open = sync.OnceValues(func() (*Driver, error) {
	lookup, err := findLibrary()
	if err != nil {
		return nil, err
	}
	return OpenLibrary(lookup)
})

// Open loads and initializes the driver, once per process. The error wraps [ErrNoDriver],
// [ErrNoDevice] or [ErrTooOld].
func Open() (*Driver, error) { return open() }

// OpenLibrary is like [Open], but takes the functions from a lookup, for tests.
func OpenLibrary(lookup Lookup) (*Driver, error) {
	d := &Driver{}
	d.caller.address = &d.address
	// An old driver lacks functions, so its version is checked first.
	for _, f := range []function{fnGetErrorName, fnGetErrorString, fnDriverGetVersion} {
		if err := d.resolve(lookup, f); err != nil {
			return nil, err
		}
	}
	if code := d.call(fnDriverGetVersion, at(&d.out.i)); code != Success {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, d.fault(fnDriverGetVersion, code))
	}
	d.version = Version(d.out.i)
	if d.version < oldest {
		return nil, fmt.Errorf("%w: it is for CUDA %v, and %v is needed; install a driver of version 530 or later", ErrTooOld, d.version, oldest)
	}
	for f := range functions {
		if err := d.resolve(lookup, f); err != nil {
			return nil, err
		}
	}
	switch code := d.call(fnInit, 0); code {
	case Success:
		return d, nil
	case NoDevice:
		return nil, noDevice(d.fault(fnInit, code))
	default:
		return nil, fmt.Errorf("%w: %w; does nvidia-smi work?", ErrNoDriver, d.fault(fnInit, code))
	}
}

func (d *Driver) resolve(lookup Lookup, f function) error {
	address, err := lookup(symbols[f])
	if err != nil {
		return fmt.Errorf("%w: its library lacks %s: %w; install a driver of version 530 or later", ErrNoDriver, symbols[f], err)
	}
	if address == 0 {
		return fmt.Errorf("%w: its library lacks %s; install a driver of version 530 or later", ErrNoDriver, symbols[f])
	}
	d.address[f] = address
	return nil
}

func noDevice(cause error) error {
	const way = "see what nvidia-smi lists, and what CUDA_VISIBLE_DEVICES allows"
	if cause == nil {
		return fmt.Errorf("%w; %s", ErrNoDevice, way)
	}
	return fmt.Errorf("%w: %w; %s", ErrNoDevice, cause, way)
}

// Version returns the newest CUDA version that the driver supports.
func (d *Driver) Version() Version { return d.version }
