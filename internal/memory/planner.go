// Package memory plans the memory that a model takes on a device, before anything is loaded: how
// long its context is, how large its cache, and which weights stream.
//
// It knows programs, devices and how an engine is sized. It loads nothing, and knows no files and
// no requests.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/bytesize"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// ErrTooLittle reports that there is less memory than was asked for or is needed.
var ErrTooLittle = errors.New("not enough memory")

// smallest is the smallest context in tokens of an automatic choice.
const smallest = 512

// unknown is how many bytes an automatic choice takes if the free memory is unknown.
const unknown = 4 << 30

// Options say how a model is to run and how much memory it may take. Sizes are in bytes.
type Options struct {
	Context  int // tokens of one sequence, at most Planner.Made; 0: the largest that fits
	Parallel int // sequences in one step; 0: the default of the kind of device

	Limit     int64 // for weights, cache and scratch together on the device; 0: the free memory
	Pinned    int64 // host memory that a device may pin for weights and HostCache; 0: a part of the free memory
	HostCache int64 // host memory for the cache

	StreamAll  bool // stream all weights that can
	StreamNone bool // stream no weights
	Ample      bool // stream no weights, and allow no shorter context than weights would stream for

	Drafts  engine.Drafts
	Follows bool // as in [engine.Config]

	Reserved int64 // of the device's memory, for a draft model

	Gap time.Duration // as in [engine.Config]; 0: the device's

	Cache       tensor.DType // format of keys and values; the program's heads must be whole blocks of it
	Activations tensor.DType // F32, or the backend's [plan.Backend.Rounds]

	// Named says that the user chose the device, or that it is the only one.
	Named bool
}

// A Planner plans the memory that a model takes on a device: the device must have room for its own
// copies of weights, the cache and the scratch memory of a step. Weights that steps read from the
// mapped file do not count, as the system can drop their pages.
type Planner struct {
	Program *plan.Program
	Made    int // the context that the model was made for, in tokens
	Device  *backends.Device
	Backend plan.Backend    // Device, or what an engine uses in its place
	Host    plan.MemoryInfo // host memory
	Options Options
	Draft   *DraftUse // set by WithDraft

	unfit error // why the draft model does not fit
}

// config returns the engine's configuration by the options, with the context that the model was
// made for if they set none.
func (p *Planner) config() engine.Config {
	o := &p.Options
	return engine.Config{
		Context: cmp.Or(o.Context, p.Made), Parallel: cmp.Or(o.Parallel, p.Device.Kind.Parallel), Host: int(o.HostCache),
		Cache: o.Cache, Activations: o.Activations, Gap: cmp.Or(o.Gap, p.Device.Kind.Gap), Drafts: o.Drafts, Follows: o.Follows,
	}
}

// widen returns c with the chunk of the device's kind, as often as there are devices, because each
// has a part of the work for a token. It is halved until its scratch memory costs neither context nor
// resident weights, and at most a sixteenth of the cache; or c stays as it is.
func (p *Planner) widen(c engine.Config) engine.Config {
	_, tokens := c.Holds(p.Program)
	for chunk := p.Device.Kind.Chunk * max(1, len(p.Device.Numbers)); chunk > leastChunk; chunk /= 2 {
		wide := p.config()
		wide.Chunk = chunk
		wide, _, ok, err := p.search(wide)
		if err != nil || !ok || wide.Context != c.Context || wide.Weights != c.Weights {
			continue
		}
		if _, all := wide.Holds(p.Program); all >= tokens-tokens/16 {
			return wide
		}
	}
	return c
}

// leastChunk is the default chunk of an engine, in tokens.
const leastChunk = 256

// Config returns the configuration of the engine for the model. A context fits if one sequence of
// it does; all sequences share the cache. An automatic context is halved until it fits. The error
// wraps [ErrTooLittle].
func (p *Planner) Config() (engine.Config, error) {
	c := p.config()
	if p.unfit != nil {
		return c, p.unfit
	}
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
	return p.widen(c), nil
}

// Least returns what the model takes with all weights on the device and a cache for one sequence,
// regardless of the free memory. The sequence has the context of the options, or else the one that
// the model was made for. The error wraps [ErrTooLittle].
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

// Free returns how many bytes the weights, the cache and a step's scratch memory may take together;
// 0 if unknown.
func (p *Planner) Free() int64 {
	m, limit := p.Backend.Memory(), p.Options.Limit
	free := room(m, limit)
	if p.Device.Kind.Host {
		free = hostRoom(m, limit, p.Options.HostCache)
	}
	if free > 0 {
		free = max(1, free-p.Options.Reserved)
	}
	return free
}

// Pinned returns how many bytes of host memory streamed weights may take.
func (p *Planner) Pinned() int { return pinned(p.Host, p.Options.Pinned, p.Options.HostCache) }

// checkHostCache returns an error if the host part of the cache does not fit in host memory.
func (p *Planner) checkHostCache() error {
	free, may := p.Host.Free, "are free"
	if most := p.Options.Pinned; most > 0 && (free == 0 || most < free) {
		free, may = most, "may be taken"
	}
	if want := p.Options.HostCache; free > 0 && want > free {
		return fmt.Errorf("%w: the cache needs %s of host memory, %s %s; lower the host's part of the cache",
			ErrTooLittle, bytesize.Text(want), bytesize.Text(free), may)
	}
	return nil
}

// fit sizes the cache of c as large as possible and reports whether one sequence fits with
// placement w. one is what the engine takes with a cache for one sequence. Without a limit, half of
// the memory that weights leave stays free, unless a context that was asked for needs it. If
// w.fill, weights take what the cache leaves: the cache gets a quarter of the memory that the
// fewest weights leave, or what one sequence needs.
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

// largest returns the size of the largest cache that takes at most share bytes together with a
// step's scratch memory, which grows with it. A cache of least bytes fits.
func (p *Planner) largest(c engine.Config, least int, share int64) (int, error) {
	low, high := least, int(min(share, math.MaxInt))
	for c.States = high; ; c.States = low + (high-low)/2 {
		size, err := c.Memory(p.Program, p.Backend)
		if err != nil {
			return 0, err
		}
		switch fits := int64(size.States)+int64(size.Scratch) <= share; {
		case fits && c.States == high:
			return size.States, nil // a larger one would not be used
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
