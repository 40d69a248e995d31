package memory

import (
	"cmp"

	"github.com/realizar/realizar/internal/plan"
)

// Bytes left to a device's driver for kernels, graphs of steps and rounding, or a share of the
// memory if that is small.
const (
	driverBytes = 256 << 20
	driverPart  = 64
)

// room returns how much of a device's own memory may be taken under limit, 0 for none. It returns 0
// if the free memory is unknown.
func room(m plan.MemoryInfo, limit int64) int64 {
	free := cmp.Or(m.Free, m.Total/2)
	return within(free-min(driverBytes, free/driverPart), limit)
}

// hostRoom returns how much host memory may be taken under limit besides a host cache of cache
// bytes.
func hostRoom(m plan.MemoryInfo, limit, cache int64) int64 {
	free := cmp.Or(m.Free, m.Total/2)
	if free > 0 {
		free = max(1, free-cache)
	}
	return within(free, limit)
}

// within returns free, or limit if that is less; 0 is unknown, or no limit.
func within(free, limit int64) int64 {
	if limit > 0 && (free == 0 || limit < free) {
		return limit
	}
	return free
}

// pinned returns how much host memory streamed weights may take besides a host cache of cache
// bytes. Both together take at most limit, or if that is 0, three quarters of the free memory.
func pinned(host plan.MemoryInfo, limit, cache int64) int {
	free := cmp.Or(host.Free, host.Total/2, unknown)
	most := free / 4 * 3
	if limit > 0 {
		most = min(limit, free)
	}
	return int(max(0, most-cache))
}

// Beside returns l with Weights set so that as many weights of p as possible fit on b's device
// besides the states and a step's scratch memory, which may depend on the weights. Together they
// take at most most bytes, if the fewest weights that work allow that.
func Beside(b plan.Backend, p *plan.Program, l plan.Limits, most int64) (plan.Limits, error) {
	states, err := l.StateBytes(p)
	if err != nil {
		return l, err
	}
	l.Weights = 1
	room := most - int64(states) - int64(b.Scratch(p, l))
	for range 8 { // each pass subtracts the excess of the one before
		if room <= 1 {
			break
		}
		l.Weights = int(room)
		over := int64(states) + int64(b.Weights(p, l)) + int64(b.Scratch(p, l)) - most
		if over <= 0 {
			return l, nil
		}
		room -= over
	}
	l.Weights = 1
	return l, nil
}
