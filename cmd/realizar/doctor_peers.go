package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// An openGPU is an open GPU and its name, such as "cuda:1".
type openGPU struct {
	name string
	*backends.Device
}

// A peerMeter measures how fast a device writes the memory of another one, in bytes per second. The
// error wraps [driver.ErrNoPeer] if the device does not reach that memory.
type peerMeter interface {
	Peer(ctx context.Context, peer plan.Backend) (float64, error)
}

// peers reports for each of several GPUs which of the others it reaches, and at what speed.
func (d *doctor) peers(all []openGPU) {
	for i := range all {
		if meter, ok := all[i].Backend.(peerMeter); ok && len(all) > 1 {
			state, text := d.peersOf(meter, all, i)
			d.report(all[i].name, "peers", state, text)
		}
	}
}

// peersOf measures the links from GPU i to the others. The state is none if it has none. The first
// link that fails is the result.
func (d *doctor) peersOf(meter peerMeter, all []openGPU, i int) (state, text string) {
	var reached, apart []string
	for j, peer := range all {
		if j == i {
			continue
		}
		switch rate, err := meter.Peer(d.app.ctx, peer.Backend); {
		case errors.Is(err, driver.ErrNoPeer):
			apart = append(apart, peer.name)
		case err != nil:
			return stateFailed, fmt.Sprintf("writing the memory of %s: %v", peer.name, err)
		default:
			reached = append(reached, fmt.Sprintf("%s at %.1f GB/s", peer.name, rate/1e9))
		}
	}
	state = stateNone
	var parts []string
	if len(reached) > 0 {
		state = stateOK
		parts = append(parts, "writes the memory of "+strings.Join(reached, ", "))
	}
	if len(apart) > 0 {
		with := apart[0]
		if len(apart) > 1 {
			with = "any of them"
		}
		parts = append(parts, fmt.Sprintf("does not reach the memory of %s: a model on %s and %s exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why",
			strings.Join(apart, " or "), all[i].name, with))
	}
	return state, strings.Join(parts, "; ")
}
