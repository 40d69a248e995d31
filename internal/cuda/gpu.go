package cuda

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/kernels"
)

// A gpu is an open device: its two threads and the kernels that are loaded.
type gpu struct {
	driver  *driver.Driver
	device  driver.Device
	version driver.Version
	target  driver.Capability // that the kernels are made for
	main    *driver.Context   // launches
	waiter  *driver.Context   // waits

	ptx      func(family string, text []byte) []byte // nil, or changes the text of kernels
	compiled atomic.Int64                            // nanoseconds that kernels took to build and load

	// Used on the main thread alone.
	modules map[string]*module
	shared  map[*driver.Function]int // dynamic shared memory that functions may have
}

// A module is a family of kernels on the device.
type module struct {
	code      *driver.Module
	functions map[string]*driver.Function
}

// newGPU opens a device for the kernels made for target.
func newGPU(d *driver.Driver, device driver.Device, target driver.Capability, ptx func(family string, text []byte) []byte) (*gpu, error) {
	g := &gpu{driver: d, device: device, version: d.Version(), target: target, ptx: ptx, modules: map[string]*module{}, shared: map[*driver.Function]int{}}
	var err error
	if g.main, err = d.NewContext(device); err != nil {
		return nil, err
	}
	if g.waiter, err = d.NewContext(device); err != nil {
		return nil, errors.Join(err, g.main.Close())
	}
	return g, nil
}

// end lets go of the device.
func (g *gpu) end() error {
	var all error
	keep := func(err error) {
		// What a lost device held is gone.
		if !errors.Is(err, driver.ErrDeviceLost) {
			all = errors.Join(all, err)
		}
	}
	keep(g.main.Do(func() error {
		for _, m := range g.modules {
			keep(m.code.Unload())
		}
		clear(g.modules)
		return nil
	}))
	keep(g.waiter.Close())
	keep(g.main.Close())
	return all
}

// function finds a kernel, loading its family where that is not there yet. It is
// called on the main thread.
func (g *gpu) function(family, name string) (*driver.Function, error) {
	m := g.modules[family]
	if m == nil {
		text, err := kernels.PTX(family, g.target.Major, g.target.Minor)
		if err != nil {
			return nil, err
		}
		if g.ptx != nil {
			text = g.ptx(family, text)
		}
		defer g.main.Doing(g.main.Doing("loading the kernels " + family))
		begun := time.Now()
		code, err := g.main.LoadModule(text)
		g.compiled.Add(int64(time.Since(begun)))
		if err != nil {
			return nil, err
		}
		m = &module{code, map[string]*driver.Function{}}
		g.modules[family] = m
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
func (g *gpu) early() bool { return g.hopper() && g.version >= programmatic }

// hopper reports whether the kernels are those made for capability 9.0.
func (g *gpu) hopper() bool { return g.target == driver.Capability{Major: 9} }

// compiling is what the kernels took so far to build and load.
func (g *gpu) compiling() time.Duration { return time.Duration(g.compiled.Load()) }

func freeHost(c *driver.Context, b []byte) error {
	if b == nil {
		return nil
	}
	return c.FreeHost(b)
}

func destroyEvent(e *driver.Event) error {
	if e == nil {
		return nil
	}
	return e.Destroy()
}
