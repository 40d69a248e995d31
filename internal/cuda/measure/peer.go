package measure

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// The most bytes that Peer copies, and the number of runs.
const (
	peerBytes = 256 << 20
	peerRuns  = 8
)

// Peer measures how fast the device writes the memory of another one, in bytes per second. The
// result is the best of a few runs. The error wraps [driver.ErrNoPeer] if the device does not reach
// that memory. Peer must not be called on the main thread of either device.
func Peer(ctx context.Context, g, peer *device.GPU) (rate float64, err error) {
	here, there := g.Main, peer.Main
	n := peerBytes
	fit := func(c *driver.Context) error {
		free, _, err := c.MemInfo()
		n = min(n, free/2) &^ 255
		return err
	}
	err = here.Do(func() error {
		if err := here.Connect(there); err != nil {
			return err
		}
		return fit(here)
	})
	if err != nil {
		return 0, err
	}
	var to driver.DevicePtr
	err = there.Do(func() (err error) {
		defer there.Doing(there.Doing("making room for what another device writes"))
		if err := fit(there); err != nil {
			return err
		}
		to, err = there.Alloc(n)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, there.Do(func() error { return there.Free(to) })) }()
	err = here.Do(func() (err error) {
		defer here.Doing(here.Doing("measuring the link to another device"))
		from, err := here.Alloc(n)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, here.Free(from)) }()
		rate, err = Fastest(ctx, here, n, peerRuns, func(s *driver.Stream) error { return s.CopyOnDevice(to, from, n) })
		return err
	})
	return rate, err
}
