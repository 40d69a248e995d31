// Package cuda runs programs on an NVIDIA GPU, using only the driver. It compiles a program into
// kernel launches, keeps weights and states in device memory, captures a step as a graph, and feeds
// sampled tokens to the next step without the host in between. It knows no architecture and no file
// format.
//
// A [Backend] owns one device. All work on the device happens on one operating system thread;
// another thread waits for results.
package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// ErrCapability reports a GPU that is too old for the kernels.
var ErrCapability = errors.New("the GPU's compute capability is below 8.0")

// Options select and configure a device.
type Options struct {
	Device int // index in the driver's order, which respects CUDA_VISIBLE_DEVICES

	// Eager launches every kernel separately instead of using graphs.
	Eager bool
	// Base uses the kernels for all devices, even if there are special ones for this device.
	Base bool
	// Tables is the folder of the user's tables of measured kernels; see [Backend.Tune]. If it is
	// empty, only the built-in tables are used.
	Tables string
	// PrefixBytes, if not 0, replaces [lower.PrefixBytes]: 1 is for all common prefixes, and
	// [math.MaxInt] for none.
	PrefixBytes int
	// Driver replaces the system's driver, for tests.
	Driver *driver.Driver
	// PTX, if not nil, receives the text of each family of kernels and returns the text to load,
	// for tests.
	PTX func(family string, text []byte) []byte
}

// A Backend is one device. Its methods are safe for concurrent use.
type Backend struct {
	*device.GPU
	eager       bool
	slots       int // maximum number of slots for streamed layers
	prefixBytes int // see lower.NewPrefixes
	close       func() error
	link        *link // of the parts of a program, or nil
	part        int
	timer       time.Duration // cost of a timer, or -1 before it is measured; used on the main thread

	tables  string           // folder of the user's tables, or ""
	tuning  *lower.TableFile // nil if there is none for the device
	untuned error            // what is wrong with the user's table, or nil
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
		return nil, fmt.Errorf("cuda: %w: device %d of %d; CUDA_VISIBLE_DEVICES selects the visible devices", driver.ErrNoDevice, o.Device, len(devices))
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
	b := &Backend{GPU: g, eager: o.Eager, slots: weights.StreamSlots, prefixBytes: cmp.Or(o.PrefixBytes, lower.PrefixBytes), timer: -1, tables: o.Tables}
	if b.tuning, b.untuned = lower.FindTable(o.Tables, g.Info.Name, g.Digest); b.untuned != nil {
		slog.Warn("a table of measured kernels is ignored", slog.Any("error", b.untuned))
	}
	b.close = sync.OnceValue(g.Close)
	return b, nil
}

// Close closes the device. All executables must be closed first.
func (b *Backend) Close() error { return b.close() }

// Name returns "cuda".
func (b *Backend) Name() string { return "cuda" }

// Rounds returns F16.
func (b *Backend) Rounds() tensor.DType { return tensor.F16 }

// activations returns the formats that [plan.Limits.Activations] may have.
func (b *Backend) activations() []tensor.DType {
	all := []tensor.DType{tensor.F32, b.Rounds()}
	if b.Hopper() {
		all = append(all, tensor.F8_E4M3)
	}
	return all
}

// Description returns the device's name.
func (b *Backend) Description() string { return b.Info.Name }

// Device returns the device that the backend runs on.
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

// Bandwidth measures how fast kernels read device memory, in bytes per second.
func (b *Backend) Bandwidth(ctx context.Context) (float64, error) {
	return b.measure(ctx, measure.Bandwidth)
}

// Link measures how fast pinned host memory is copied to the device, in bytes per second.
func (b *Backend) Link(ctx context.Context) (float64, error) { return b.measure(ctx, measure.Link) }

// Peer measures how fast the device writes the memory of another one, in bytes per second. The error
// wraps [driver.ErrNoPeer] if the device does not reach that memory.
func (b *Backend) Peer(ctx context.Context, peer plan.Backend) (float64, error) {
	to, ok := peer.(*Backend)
	if !ok {
		return 0, fmt.Errorf("cuda: %w: %s is not one GPU", driver.ErrNoPeer, peer.Name())
	}
	rate, err := measure.Peer(ctx, b.GPU, to.GPU)
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return rate, nil
}

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

// timerCost returns the cost of a timer, measured once. It must be called on the main thread.
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
