package main

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/backends"
)

// memoryRates measures how fast memory is read, in bytes per second, on the device of the given
// kind that f chooses. If link is set, copies is the rate of copies from host memory to the device.
func memoryRates(ctx context.Context, f *modelFlags, kind string, link bool) (reads, copies float64, err error) {
	c := backends.Choice{Name: f.Device, Threads: f.Threads}
	if backends.Automatic(c.Name) {
		c.Name = kind
	}
	device, _, err := backends.All.Open(c)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if reads, err = device.Bandwidth(ctx); err == nil && link {
		copies, err = device.Link(ctx)
	}
	return reads, copies, err
}
