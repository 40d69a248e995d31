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

// readBandwidth measures how fast the memory is read that a model was in, in bytes a
// second: that of the device which f chooses and which is called so, or where it is
// called nothing, the processor's.
func readBandwidth(ctx context.Context, f *modelFlags, name string) (rate float64, err error) {
	if name == "" {
		size := int64(bandwidthBuffer)
		if free := cpu.New(f.Threads).Memory().Free; free > 0 {
			size = min(size, free/4)
		}
		rate = cpu.ReadBandwidth(f.Threads, size)
		debug.FreeOSMemory()
		return rate, nil
	}
	device, _, err := backends.All.Open(f.Device)
	if err != nil {
		return 0, err
	}
	if device == nil {
		return 0, fmt.Errorf("%s is there no longer", name)
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	return device.Bandwidth(ctx)
}
