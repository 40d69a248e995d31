package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// What Bandwidth reads, many times what the second-level cache holds, and how often.
const (
	bandwidthBytes = 2 << 30
	bandwidthRuns  = 8
)

type readArgs struct {
	p   driver.DevicePtr
	n   int64
	out driver.DevicePtr
}

// Bandwidth measures how fast a kernel that does nothing else reads the device's memory,
// in bytes a second: the best of a few runs.
func (b *Backend) Bandwidth(ctx context.Context) (rate float64, err error) {
	err = b.main.Do(func() error {
		rate, err = b.bandwidth(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return rate, nil
}

func (b *Backend) bandwidth(ctx context.Context) (rate float64, err error) {
	c := b.main
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
	f, err := b.function("bandwidth", "readAll")
	if err != nil {
		return 0, err
	}
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
	a := arguments(&readArgs{p: p, n: int64(n / 16), out: p})
	for range bandwidthRuns {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := from.Record(s); err != nil {
			return 0, err
		}
		if err := f.Launch(s, driver.LaunchConfig{Grid: driver.Dim3{X: 8 * b.device.Multiprocessors}, Block: driver.Dim3{X: 256}}, a); err != nil {
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
