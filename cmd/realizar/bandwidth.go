package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/mesh"
)

// memoryRates measures how fast memory is read, in bytes per second, on the device of the given
// kind and description that f chooses. If link is set, copies is the rate of copies from host memory
// to the device.
func memoryRates(ctx context.Context, f *modelFlags, kind, description string, link bool) (reads, copies float64, err error) {
	c := backends.Choice{Name: f.Device, Threads: f.Threads, Split: mesh.Split(f.options().Split)}
	if backends.Automatic(c.Name) {
		c.Name = kind
	}
	var device *backends.Device
	_, err = backends.All.Use(ctx, c, func(a backends.Attempt) error {
		device = a.Devices[0]
		if a.Ample && device.Description() != description {
			return backends.TooFew(fmt.Errorf("the model runs on %s", description))
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if reads, err = device.Bandwidth(ctx); err == nil && link {
		copies, err = device.Link(ctx)
	}
	return reads, copies, err
}
