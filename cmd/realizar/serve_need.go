package main

import (
	"cmp"
	"math"
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
func needOf(least *realizar.LeastMemory) pool.Need { return divided(least, least.Bytes) }

// freeOf returns what a model may take of each device; unlimited if that is not known.
func freeOf(least *realizar.LeastMemory) pool.Need {
	return divided(least, cmp.Or(least.Free, unlimited))
}

// divided returns how many of bytes are on each device of a model.
func divided(least *realizar.LeastMemory, bytes int64) pool.Need {
	need := pool.Need{}
	for i, d := range devicesOf(least) {
		if need[d] = bytes; i < len(least.Shares) {
			need[d] = int64(math.Ceil(float64(bytes) * least.Shares[i]))
		}
	}
	return need
}
