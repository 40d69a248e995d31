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
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
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
	*device.GPU
	eager bool
	slots int // that layers that stream have at most
	close func() error
	timer time.Duration // what one costs, -1 until that is known; of the main thread
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
	base := driver.Capability{Major: 8}
	target := devices[o.Device].Capability
	if !target.AtLeast(base.Major, base.Minor) {
		return nil, fmt.Errorf("cuda: %w: %s has %v; use --device cpu", ErrCapability, devices[o.Device].Name, target)
	}
	if o.Base {
		target = base
	}
	g, err := device.Open(d, devices[o.Device], target, o.PTX)
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	b := &Backend{GPU: g, eager: o.Eager, slots: weights.StreamSlots, timer: -1}
	b.close = sync.OnceValue(g.Close)
	return b, nil
}

// Close lets go of the device. Executables are closed before.
func (b *Backend) Close() error { return b.close() }

// Name is "cuda".
func (b *Backend) Name() string { return "cuda" }

// Rounds is F16.
func (b *Backend) Rounds() tensor.DType { return tensor.F16 }

// Description is the device's name.
func (b *Backend) Description() string { return b.Info.Name }

// Device is the one that the backend runs on.
func (b *Backend) Device() driver.Device { return b.Info }

// Memory implements [plan.Backend].
func (b *Backend) Memory() plan.MemoryInfo {
	var m plan.MemoryInfo
	_ = b.Main.Do(func() error {
		free, total, err := b.Main.MemInfo()
		if err == nil {
			m = plan.MemoryInfo{Free: int64(free), Total: int64(total)}
		}
		return err
	})
	return m
}

// Bandwidth is how fast kernels read the device's memory, measured, in bytes a second.
func (b *Backend) Bandwidth(ctx context.Context) (float64, error) {
	return b.measure(ctx, measure.Bandwidth)
}

// Link is how fast pinned memory of the host is copied to the device, measured, in bytes a
// second.
func (b *Backend) Link(ctx context.Context) (float64, error) { return b.measure(ctx, measure.Link) }

func (b *Backend) measure(ctx context.Context, rate func(context.Context, *device.GPU) (float64, error)) (r float64, err error) {
	err = b.Main.Do(func() error {
		r, err = rate(ctx, b.GPU)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return r, nil
}

// timerCost is what a timer costs, measured once, on the main thread.
func (b *Backend) timerCost(memory driver.DevicePtr, bytes int) (time.Duration, error) {
	if b.timer < 0 {
		cost, err := measure.TimerCost(b.GPU, memory, bytes)
		if err != nil {
			return 0, err
		}
		b.timer = cost
	}
	return b.timer, nil
}
