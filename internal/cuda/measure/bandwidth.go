package measure

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// The number of bytes that Bandwidth reads, many times the size of the second-level cache, and the
// number of runs.
const (
	bandwidthBytes = 2 << 30
	bandwidthRuns  = 8
)

type readArgs struct {
	p   driver.DevicePtr
	n   int64
	out driver.DevicePtr
}

// Bandwidth measures how fast a kernel that only reads can read device memory, in bytes per second.
// The result is the best of a few runs. It must be called on the main thread.
func Bandwidth(ctx context.Context, g *device.GPU) (rate float64, err error) {
	c := g.Main
	defer c.Doing(c.Doing("measuring the memory's bandwidth"))
	free, _, err := c.MemInfo()
	if err != nil {
		return 0, err
	}
	n := min(bandwidthBytes, free/2) &^ 255
	p, err := c.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Free(p)) }()
	if err := c.Memset8(p, 1, n); err != nil {
		return 0, err
	}
	f, err := g.Function("bandwidth", "readAll")
	if err != nil {
		return 0, err
	}
	a := device.Arguments(&readArgs{p: p, n: int64(n / 16), out: p})
	return Fastest(ctx, c, n, bandwidthRuns, func(s *driver.Stream) error {
		return f.Launch(s, driver.LaunchConfig{Grid: driver.Dim3{X: 8 * g.Info.Multiprocessors}, Block: driver.Dim3{X: 256}}, a)
	})
}

// Fastest returns the best rate of a few runs of f, which moves n bytes, in bytes per second. It
// must be called on the main thread.
func Fastest(ctx context.Context, c *driver.Context, n, runs int, f func(*driver.Stream) error) (rate float64, err error) {
	s, err := c.NewStream()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Destroy()) }()
	from, err := c.NewTimer()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Destroy()) }()
	to, err := c.NewTimer()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Destroy()) }()
	for range runs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := from.Record(s); err != nil {
			return 0, err
		}
		if err := f(s); err != nil {
			return 0, err
		}
		if err := to.Record(s); err != nil {
			return 0, err
		}
		if err := to.Synchronize(); err != nil {
			return 0, err
		}
		ms, err := to.Since(from)
		if err != nil {
			return 0, err
		}
		if ms > 0 {
			rate = max(rate, float64(n)/float64(ms)*1e3)
		}
	}
	return rate, nil
}
