package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// What Link copies, and how often.
const (
	linkBytes = 256 << 20
	linkRuns  = 8
)

// Link measures how fast pinned memory of the host is copied to the device, in bytes a
// second: the best of a few runs.
func (b *Backend) Link(ctx context.Context) (rate float64, err error) {
	err = b.main.Do(func() error {
		c := b.main
		defer c.Doing(c.Doing("measuring the link to the host"))
		free, _, err := c.MemInfo()
		if err != nil {
			return err
		}
		n := min(linkBytes, free/2) &^ 255
		host, err := c.AllocHost(n)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.FreeHost(host)) }()
		clear(host) // the pages are there
		to, err := c.Alloc(n)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Free(to)) }()
		rate, err = b.fastest(ctx, n, linkRuns, func(s *driver.Stream) error { return s.CopyToDevice(to, host) })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cuda: %w", err)
	}
	return rate, nil
}
