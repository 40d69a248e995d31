package measure

import (
	"errors"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// The launches that measure the cost of a timer: blocks that read for a while, so that all later
// launches are queued before they begin, and then kernels that do nothing.
const (
	holdBytes     = 32 << 20
	holds         = 2
	TimedLaunches = 48
)

// TimerCost returns how much longer a kernel takes if a timer follows it: the device records the
// time when all earlier work has ended, and only then continues. It must be called on the main
// thread. It reads bytes bytes of memory.
func TimerCost(g *device.GPU, memory driver.DevicePtr, bytes int) (time.Duration, error) {
	c := g.Main
	defer c.Doing(c.Doing("measuring what timers cost"))
	f, err := g.Function("bandwidth", "readAll")
	if err != nil {
		return 0, err
	}
	s, err := c.NewStream()
	if err != nil {
		return 0, err
	}
	events := make([]*driver.Event, 0, TimedLaunches+1)
	cost, err := func() (time.Duration, error) {
		for range cap(events) {
			e, err := c.NewTimer()
			if err != nil {
				return 0, err
			}
			events = append(events, e)
		}
		var least [2]time.Duration // without and with timers in between
		for range 5 {
			for i := range least {
				d, err := launchesTake(s, f, memory, bytes, events, i == 1)
				if err != nil {
					return 0, err
				}
				if least[i] == 0 || d < least[i] {
					least[i] = d
				}
			}
		}
		return max(0, (least[1]-least[0])/TimedLaunches), nil
	}()
	all := []error{err}
	for _, e := range events {
		all = append(all, e.Destroy())
	}
	if err := errors.Join(append(all, s.Destroy())...); err != nil {
		return 0, err
	}
	return cost, nil
}

// launchesTake returns how long launches of empty kernels take, with a timer after each of them or
// only after the last.
func launchesTake(s *driver.Stream, f *driver.Function, memory driver.DevicePtr, bytes int, events []*driver.Event, each bool) (time.Duration, error) {
	one := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 256}}
	hold, nothing := device.Arguments(&readArgs{p: memory, n: int64(min(bytes, holdBytes) / 16)}), device.Arguments(&readArgs{})
	for range holds {
		if err := f.Launch(s, one, hold); err != nil {
			return 0, err
		}
	}
	last := len(events) - 1
	if err := events[0].Record(s); err != nil {
		return 0, err
	}
	for i := range TimedLaunches {
		if err := f.Launch(s, one, nothing); err != nil {
			return 0, err
		}
		if each || i+1 == last {
			if err := events[i+1].Record(s); err != nil {
				return 0, err
			}
		}
	}
	if err := events[last].Synchronize(); err != nil {
		return 0, err
	}
	ms, err := events[last].Since(events[0])
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}
