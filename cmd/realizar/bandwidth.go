package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
)

// bandwidthBuffer is larger than the caches of almost any machine.
const bandwidthBuffer = 512 << 20

// memoryRates measures how fast the memory is read that a model was in, in bytes a
// second: that of the device which f chooses and which is called so, or where it is
// called nothing, the processor's. Where wanted, copies are how fast the host's memory is
// copied to the device.
func memoryRates(ctx context.Context, f *modelFlags, name string, link bool) (reads, copies float64, err error) {
	if name == "" {
		size := int64(bandwidthBuffer)
		if free := cpu.New(f.Threads).Memory().Free; free > 0 {
			size = min(size, free/4)
		}
		reads = cpu.ReadBandwidth(f.Threads, size)
		debug.FreeOSMemory()
		return reads, 0, nil
	}
	device, _, err := backends.All.Open(f.Device, false)
	if err != nil {
		return 0, 0, err
	}
	if device == nil {
		return 0, 0, fmt.Errorf("%s is there no longer", name)
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if reads, err = device.Bandwidth(ctx); err == nil && link {
		copies, err = device.Link(ctx)
	}
	return reads, copies, err
}
