package memory

import (
	"cmp"

	"github.com/realizar/realizar/internal/plan"
)

// driverBytes are left to a device's driver, or a part of its memory where that is
// small: for kernels, graphs of steps, and what it rounds up.
const (
	driverBytes = 256 << 20
	driverPart  = 64
)

// room is what may be taken of a device's own memory, with a limit or without one (0);
// 0 if nobody knows.
func room(m plan.MemoryInfo, limit int64) int64 {
	free := cmp.Or(m.Free, m.Total/2)
	return within(free-min(driverBytes, free/driverPart), limit)
}

// hostRoom is what may be taken of the host's memory beside a cache of so many bytes
// that lies there too.
func hostRoom(m plan.MemoryInfo, limit, cache int64) int64 {
	free := cmp.Or(m.Free, m.Total/2)
	if free > 0 {
		free = max(1, free-cache)
	}
	return within(free, limit)
}

// within is free, or limit if that is less; 0 is unknown, or no limit.
func within(free, limit int64) int64 {
	if limit > 0 && (free == 0 || limit < free) {
		return limit
	}
	return free
}

// pinned is what weights that stream may take of the host's memory beside a cache of
// so many bytes: both together limit, or three quarters of what is free if that is 0.
func pinned(host plan.MemoryInfo, limit, cache int64) int {
	free := cmp.Or(host.Free, host.Total/2, unknown)
	most := free / 4 * 3
	if limit > 0 {
		most = min(limit, free)
	}
	return int(max(0, most-cache))
}

// Beside is l with as many weights of p on b's device as have room there beside the
// states and the scratch of a step, which may depend on them: all together take most
// bytes if the fewest weights that work leave room for that.
func Beside(b plan.Backend, p *plan.Program, l plan.Limits, most int64) (plan.Limits, error) {
	states, err := l.StateBytes(p)
	if err != nil {
		return l, err
	}
	l.Weights = 1
	room := most - int64(states) - int64(b.Scratch(p, l))
	for range 8 { // each takes off what the one before was too large by
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
