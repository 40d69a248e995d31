package measure

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// The number of bytes that Link copies, and the number of runs.
const (
	linkBytes = 256 << 20
	linkRuns  = 8
)

// Link measures how fast pinned host memory is copied to the device, in bytes per second. The
// result is the best of a few runs. It must be called on the main thread.
func Link(ctx context.Context, g *device.GPU) (rate float64, err error) {
	c := g.Main
	defer c.Doing(c.Doing("measuring the link to the host"))
	free, _, err := c.MemInfo()
	if err != nil {
		return 0, err
	}
	n := min(linkBytes, free/2) &^ 255
	host, err := c.AllocHost(n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.FreeHost(host)) }()
	clear(host) // touches all pages
	to, err := c.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Free(to)) }()
	return Fastest(ctx, c, n, linkRuns, func(s *driver.Stream) error { return s.CopyToDevice(to, host) })
}
