// Package cuda runs programs on an NVIDIA GPU, through the driver alone. It
// compiles a program into launches of kernels, keeps weights and states in the
// device's memory, captures a step as a graph and feeds the tokens that it samples
// to the next step without the host in between. It knows no architecture and no
// file format.
//
// A [Backend] owns one device. What happens there happens on one thread of the
// operating system; another one waits for what is done.
package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/kernels"
	"github.com/realizar/realizar/internal/plan"
)

// ErrCapability says that a GPU is older than the kernels.
var ErrCapability = errors.New("the GPU's compute capability is below 8.0")

// Options choose a device.
type Options struct {
	Device int // as the driver counts, which obeys CUDA_VISIBLE_DEVICES

	// Eager launches every kernel by itself in place of graphs.
	Eager bool
	// Base takes the kernels for every device, also where there are some for this one.
	Base bool
	// Driver is what to call in place of the system's driver; for tests.
	Driver *driver.Driver
	// PTX, where not nil, is given the text of each family of kernels and returns the one
	// to load; for tests.
	PTX func(family string, text []byte) []byte
}

// A Backend is one device. Its methods may be called by any goroutine.
type Backend struct {
	driver  *driver.Driver
	device  driver.Device
	version driver.Version
	target  driver.Capability // that the kernels are made for
	eager   bool
	slots   int                                     // that layers that stream have at most
	ptx     func(family string, text []byte) []byte // of [Options]
	main    *driver.Context                         // launches
	waiter  *driver.Context                         // waits

	close func() error

	compiled atomic.Int64 // nanoseconds that kernels took to build and load

	// Used on the main thread alone.
	modules map[string]*module
	timer   *time.Duration           // what one costs, once that is known
	shared  map[*driver.Function]int // dynamic shared memory that functions may have
}

// A module is a family of kernels on the device.
type module struct {
	code      *driver.Module
	functions map[string]*driver.Function
}

// Open finds the driver and a device. The errors wrap [driver.ErrNoDriver],
// [driver.ErrNoDevice], [driver.ErrTooOld] or [ErrCapability] with what is missing.
func Open(o Options) (*Backend, error) {
	d := o.Driver
	if d == nil {
		var err error
		if d, err = driver.Open(); err != nil {
			return nil, fmt.Errorf("cuda: %w", err)
		}
	}
	devices, err := d.Devices()
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if o.Device < 0 || o.Device >= len(devices) {
		return nil, fmt.Errorf("cuda: %w: device %d of %d; CUDA_VISIBLE_DEVICES says which there are", driver.ErrNoDevice, o.Device, len(devices))
	}
	b := &Backend{driver: d, device: devices[o.Device], version: d.Version(), eager: o.Eager, slots: streamSlots, ptx: o.PTX, modules: map[string]*module{}, shared: map[*driver.Function]int{}}
	base := driver.Capability{Major: 8}
	if !b.device.Capability.AtLeast(base.Major, base.Minor) {
		return nil, fmt.Errorf("cuda: %w: %s has %v; use --device cpu", ErrCapability, b.device.Name, b.device.Capability)
	}
	if b.target = b.device.Capability; o.Base {
		b.target = base
	}
	if b.main, err = d.NewContext(b.device); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if b.waiter, err = d.NewContext(b.device); err != nil {
		return nil, errors.Join(fmt.Errorf("cuda: %w", err), b.main.Close())
	}
	b.close = sync.OnceValue(b.end)
	return b, nil
}

// Close lets go of the device. Executables are closed before.
func (b *Backend) Close() error { return b.close() }

func (b *Backend) end() error {
	var all error
	keep := func(err error) {
		// What a lost device held is gone.
		if !errors.Is(err, driver.ErrDeviceLost) {
			all = errors.Join(all, err)
		}
	}
	keep(b.main.Do(func() error {
		for _, m := range b.modules {
			keep(m.code.Unload())
		}
		b.modules = map[string]*module{}
		return nil
	}))
	keep(b.waiter.Close())
	keep(b.main.Close())
	return all
}

// Name is "cuda".
func (b *Backend) Name() string { return "cuda" }

// Description is the device's name.
func (b *Backend) Description() string { return b.device.Name }

// Device is the one that the backend runs on.
func (b *Backend) Device() driver.Device { return b.device }

// Memory implements [plan.Backend].
func (b *Backend) Memory() plan.MemoryInfo {
	var m plan.MemoryInfo
	_ = b.main.Do(func() error {
		free, total, err := b.main.MemInfo()
		if err == nil {
			m = plan.MemoryInfo{Free: int64(free), Total: int64(total)}
		}
		return err
	})
	return m
}

// function finds a kernel, loading its family where that is not there yet. It is
// called on the main thread.
func (b *Backend) function(family, name string) (*driver.Function, error) {
	m := b.modules[family]
	if m == nil {
		text, err := kernels.PTX(family, b.target.Major, b.target.Minor)
		if err != nil {
			return nil, err
		}
		if b.ptx != nil {
			text = b.ptx(family, text)
		}
		defer b.main.Doing(b.main.Doing("loading the kernels " + family))
		begun := time.Now()
		code, err := b.main.LoadModule(text)
		b.compiled.Add(int64(time.Since(begun)))
		if err != nil {
			return nil, err
		}
		m = &module{code, map[string]*driver.Function{}}
		b.modules[family] = m
	}
	f := m.functions[name]
	if f == nil {
		var err error
		if f, err = m.code.Function(name); err != nil {
			return nil, err
		}
		m.functions[name] = f
	}
	return f, nil
}

// programmatic is the first version whose graphs keep launches that may begin before
// the one before them has ended.
const programmatic = driver.Version(12030)

// early reports whether kernels may begin before those before them have ended.
func (b *Backend) early() bool { return b.hopper() && b.version >= programmatic }

// hopper reports whether the kernels are those made for capability 9.0.
func (b *Backend) hopper() bool { return b.target == driver.Capability{Major: 9} }
