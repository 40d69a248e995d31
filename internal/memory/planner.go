// Package memory plans the memory that a model takes on a device, before anything is
// loaded: how long its context is, how large its cache, and which weights stream.
//
// It knows programs, devices and how an engine is sized. It loads nothing, and knows
// no files and no requests.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/bytesize"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// ErrTooLittle says that there is less memory than was asked for or is needed.
var ErrTooLittle = errors.New("not enough memory")

// smallest is the context in tokens below which an automatic choice gives up.
const smallest = 512

// unknown is how many bytes an automatic choice takes where the system does not say
// what memory there is.
const unknown = 4 << 30

// Options say how a model is to run and what of the memory it may take. Sizes are in
// bytes.
type Options struct {
	Context  int // tokens of one sequence, at most Planner.Made; 0: the largest that fits
	Parallel int // sequences in one step; 0: as many as the kind of device is given

	Limit     int64 // that weights, cache and scratch take together on the device; 0: what is free
	Pinned    int64 // of the host's memory, that a device pins for weights and HostCache; 0: a part of what is free
	HostCache int64 // of the host's memory, for the cache

	StreamAll  bool // all weights stream that can
	StreamNone bool // no weights stream

	Cache       tensor.DType // of keys and values; the program's heads are whole blocks of it
	Activations tensor.DType // F32, or what the backend rounds to

	// Named says that the user chose the device, or that there is no other one.
	Named bool
}

// A Planner plans the memory that a model takes on a device: what the device takes for
// weights of its own, the cache and the scratch of a step must be there. Weights that
// steps read from the mapped file do not count, as the system can let go of them.
type Planner struct {
	Program *plan.Program
	Made    int // the context that the model was made for, in tokens
	Device  *backends.Device
	Backend plan.Backend    // Device, or what an engine has in its place
	Host    plan.MemoryInfo // the host's memory
	Options Options
}

// config is what the options say of an engine, with the context that the model was
// made for where they leave it open.
func (p *Planner) config() engine.Config {
	o := &p.Options
	return engine.Config{
		Context: cmp.Or(o.Context, p.Made), Parallel: cmp.Or(o.Parallel, p.Device.Kind.Parallel), Host: int(o.HostCache),
		Cache: o.Cache, Activations: o.Activations, Chunk: p.Device.Kind.Chunk, Gap: p.Device.Kind.Gap,
	}
}

// Config sizes the engine that the model is opened with. A context fits if one
// sequence of it does; all sequences share what there is. An automatic context is
// halved until it fits. The error wraps [ErrTooLittle].
func (p *Planner) Config() (engine.Config, error) {
	c := p.config()
	if err := p.checkHostCache(); err != nil {
		return c, err
	}
	c, one, ok, err := p.search(c)
	switch {
	case err != nil:
		return c, fmt.Errorf("%w: %w", ErrTooLittle, err)
	case !ok:
		return c, p.tooLittle(c, one)
	}
	return c, nil
}

// Least is what the model takes with all weights on the device and a cache for one sequence of
// the context that was asked for, or else of the one that the model was made for, whatever the
// device has free. The error wraps [ErrTooLittle].
func (p *Planner) Least() (engine.Config, engine.Memory, error) {
	c := p.config()
	c.States = 1
	m, err := c.Memory(p.Program, p.Backend)
	if err != nil {
		return c, m, fmt.Errorf("%w: %w", ErrTooLittle, err)
	}
	c.States = m.States
	return c, m, nil
}

// Free is how many bytes the weights, the cache and a step's scratch may take
// together; 0 if nobody knows.
func (p *Planner) Free() int64 {
	m, limit := p.Backend.Memory(), p.Options.Limit
	if p.Device.Kind.Host {
		return hostRoom(m, limit, p.Options.HostCache)
	}
	return room(m, limit)
}

// Pinned is how many bytes of the host's memory weights that stream may take.
func (p *Planner) Pinned() int { return pinned(p.Host, p.Options.Pinned, p.Options.HostCache) }

// checkHostCache says whether the host has memory for its part of the cache.
func (p *Planner) checkHostCache() error {
	free, may := p.Host.Free, "are free"
	if most := p.Options.Pinned; most > 0 && (free == 0 || most < free) {
		free, may = most, "may be taken"
	}
	if want := p.Options.HostCache; free > 0 && want > free {
		return fmt.Errorf("%w: %s of the host's memory are wanted for the cache, %s %s; lower the host's part of the cache",
			ErrTooLittle, bytesize.Text(want), bytesize.Text(free), may)
	}
	return nil
}

// fit sizes the cache of c as large as it may be and reports whether one sequence fits
// if weights are placed as w says; one is what the engine takes with a cache for no
// more than that. Without a limit, half of what is free beside the weights is left to
// others, unless a context that was asked for needs it. If weights take what the cache
// leaves, nothing is left: the cache has a quarter of what is free beside the fewest
// weights, or what one sequence needs.
func (p *Planner) fit(c engine.Config, w placement) (sized engine.Config, one engine.Memory, ok bool, err error) {
	c.States, c.Weights, c.Pinned = 1, w.weights, 0
	if w.weights > 0 {
		c.Pinned = p.Pinned()
	}
	if one, err = c.Memory(p.Program, p.Backend); err != nil {
		return c, one, false, err
	}
	c.States = one.States
	need := int64(one.States) + int64(one.Scratch)
	free := p.Free()
	left := free - int64(one.Weights)
	share := left
	switch {
	case free == 0:
		share = unknown
	case w.fill:
		share = left / 4
	case p.Options.Limit == 0:
		share = left / 2
	}
	if need <= share {
		if c.States, err = p.largest(c, one.States, share); err != nil {
			return c, one, false, err
		}
	} else if brim := p.Options.Context > 0 || w.brim && c.Context <= w.least; !brim || free > 0 && need > left {
		return c, one, false, nil
	}
	if w.fill && free > 0 {
		limits, err := Beside(p.Backend, p.Program, c.Limits(p.Program), free)
		if err != nil {
			return c, one, false, err
		}
		c.Weights = limits.Weights
	}
	return c, one, true, nil
}

// largest is the size of the largest cache that takes share bytes at most together
// with a step's scratch, which grows with it: least is what fits.
func (p *Planner) largest(c engine.Config, least int, share int64) (int, error) {
	low, high := least, int(min(share, math.MaxInt))
	for c.States = high; ; c.States = low + (high-low)/2 {
		size, err := c.Memory(p.Program, p.Backend)
		if err != nil {
			return 0, err
		}
		switch fits := int64(size.States)+int64(size.Scratch) <= share; {
		case fits && c.States == high:
			return size.States, nil // there is no use for more
		case fits:
			low = c.States
		default:
			high = min(c.States, size.States)
		}
		if high-low <= max(1, least/64) {
			return low, nil
		}
	}
}
