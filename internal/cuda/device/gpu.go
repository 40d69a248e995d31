// Package device manages an open GPU: its two threads, the loaded kernels, and the conversion of Go
// structures to kernel arguments. It knows nothing about programs.
package device

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/kernels"
)

// A GPU is an open device with its two threads and loaded kernels.
type GPU struct {
	Driver  *driver.Driver
	Info    driver.Device
	Version driver.Version
	target  driver.Capability // capability that the kernels are compiled for
	Main    *driver.Context   // launches
	Waiter  *driver.Context   // waits

	ptx      func(family string, text []byte) []byte // modifies the text of kernels; may be nil
	compiled atomic.Int64                            // nanoseconds spent on compiling and loading kernels

	Clusters map[Occupancy]int // how many run at the same time; nil if the kernels have no clusters

	// Used on the main thread alone.
	Modules map[string]*module
	Shared  map[*driver.Function]int // maximum dynamic shared memory of functions, in bytes
}

// A module is a loaded family of kernels.
type module struct {
	code      *driver.Module
	Functions map[string]*driver.Function
}

// Open opens a device, for kernels compiled for target.
func Open(d *driver.Driver, device driver.Device, target driver.Capability, ptx func(family string, text []byte) []byte) (*GPU, error) {
	g := &GPU{Driver: d, Info: device, Version: d.Version(), target: target, ptx: ptx, Modules: map[string]*module{}, Shared: map[*driver.Function]int{}}
	var err error
	if g.Main, err = d.NewContext(device); err != nil {
		return nil, err
	}
	if g.Waiter, err = d.NewContext(device); err != nil {
		return nil, errors.Join(err, g.Main.Close())
	}
	if g.Hopper() {
		if g.Clusters, err = g.clusters(); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// Close closes the device.
func (g *GPU) Close() error {
	var all error
	keep := func(err error) {
		// A lost device has already lost its memory.
		if !errors.Is(err, driver.ErrDeviceLost) {
			all = errors.Join(all, err)
		}
	}
	keep(g.Main.Do(func() error {
		for _, m := range g.Modules {
			keep(m.code.Unload())
		}
		clear(g.Modules)
		return nil
	}))
	keep(g.Waiter.Close())
	keep(g.Main.Close())
	return all
}

// Function returns a kernel, and loads its family if needed. It must be called on the main thread.
func (g *GPU) Function(family, name string) (*driver.Function, error) {
	m := g.Modules[family]
	if m == nil {
		text, err := kernels.PTX(family, g.target.Major, g.target.Minor)
		if err != nil {
			return nil, err
		}
		if g.ptx != nil {
			text = g.ptx(family, text)
		}
		defer g.Main.Doing(g.Main.Doing("loading the kernels " + family))
		begun := time.Now()
		code, err := g.Main.LoadModule(text)
		g.compiled.Add(int64(time.Since(begun)))
		if err != nil {
			return nil, err
		}
		m = &module{code, map[string]*driver.Function{}}
		g.Modules[family] = m
	}
	f := m.Functions[name]
	if f == nil {
		var err error
		if f, err = m.code.Function(name); err != nil {
			return nil, err
		}
		m.Functions[name] = f
	}
	return f, nil
}

// Digest returns a digest of the kernels of products, which changes with their code and the target.
func (g *GPU) Digest() (string, error) {
	// Without several_experts, wide_experts, wide_attention and wide_latent.
	return kernels.Digest(g.target.Major, g.target.Minor, "weights_*", "several_[^e]*", "wide_[^ael]*")
}

// Programmatic is the first driver version whose graphs support launches that may begin before the
// previous one has ended.
const Programmatic = driver.Version(12030)

// Early reports whether kernels may begin before the previous ones have ended.
func (g *GPU) Early() bool { return g.Hopper() && g.Version >= Programmatic }

// Carveouts is the first driver version whose launches ask for a share of shared memory. Whether
// earlier ones can was not tried.
const Carveouts = driver.Version(13000)

// Carves reports whether launches ask for a share of shared memory. It was measured on Hopper alone.
func (g *GPU) Carves() bool { return g.Hopper() && g.Version >= Carveouts }

// Hopper reports whether the kernels are compiled for capability 9.0.
func (g *GPU) Hopper() bool { return g.target == driver.Capability{Major: 9} }

// Compiling returns the time spent so far on compiling and loading kernels.
func (g *GPU) Compiling() time.Duration { return time.Duration(g.compiled.Load()) }

// FreeHost frees memory of [driver.Context.AllocHost]. It does nothing if b is nil.
func FreeHost(c *driver.Context, b []byte) error {
	if b == nil {
		return nil
	}
	return c.FreeHost(b)
}

// DestroyEvent destroys an event. It does nothing if e is nil.
func DestroyEvent(e *driver.Event) error {
	if e == nil {
		return nil
	}
	return e.Destroy()
}
