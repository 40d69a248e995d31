package main

import (
	"strconv"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
)

// devicesOf returns the devices that a model runs on, as [pool.Need] names them: the kind for the
// first device of a kind, such as "cuda", and others with their number, such as "cuda:1".
func devicesOf(least *realizar.LeastMemory) []string {
	if len(least.Numbers) == 0 {
		return []string{least.Device}
	}
	var all []string
	for _, n := range least.Numbers {
		device := least.Device
		if n > 0 {
			device += ":" + strconv.Itoa(n)
		}
		all = append(all, device)
	}
	return all
}

// needOf returns what a model takes of each device.
func needOf(least *realizar.LeastMemory) pool.Need {
	need, devices := pool.Need{}, devicesOf(least)
	n := int64(len(devices))
	for _, d := range devices {
		need[d] = (least.Bytes + n - 1) / n
	}
	return need
}
