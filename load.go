package realizar

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// smallest is the context below which an automatic choice gives up.
const smallest = 512

// unknown is what an automatic choice takes where the system does not say what
// memory there is.
const unknown = 4 << 30

// A planner plans the memory that a model takes on a backend, before anything is
// loaded: what the backend takes for weights of its own, the cache and the scratch of
// a step must be there. Weights that steps read from the mapped file do not count, as
// the system can let go of them.
type planner struct {
	program *plan.Program
	made    int // the context that the model was made for
	backend plan.Backend
	options Options
}

// config is what o says of an engine, with the context that the model was made for
// where o leaves it open.
func (p *planner) config() (engine.Config, error) {
	o := &p.options
	together := defaultParallel
	if _, device := p.backend.(backends.Device); device {
		together = defaultParallelDevice
	}
	c := engine.Config{
		Context: cmp.Or(o.Context, p.made), Parallel: cmp.Or(o.Parallel, together), Host: int(o.HostCache),
		Cache: o.Cache.dtype(o.Activations), Activations: o.Activations.products(),
	}
	if c.Context > p.made {
		return c, fmt.Errorf("%w: a context of %d tokens, but the model was made for %d", ErrOptions, c.Context, p.made)
	}
	return c, o.Cache.check(p.program)
}

// sizes is what the model is opened with. A context fits where one answer of it does;
// all answers share what there is. An automatic context is halved until it fits.
func (p *planner) sizes() (engine.Config, error) {
	c, err := p.config()
	if err != nil {
		return c, err
	}
	if err := p.checkHost(); err != nil {
		return c, err
	}
	for {
		sized, one, ok, err := p.fit(c)
		switch {
		case err != nil:
			return c, fmt.Errorf("%w: %w", ErrMemory, err)
		case ok:
			return sized, nil
		case p.options.Context > 0 || c.Context <= smallest:
			return c, p.tooLittle(c, one)
		}
		c.Context = powerBelow(c.Context)
	}
}

// free is what the weights, the cache and a step's scratch may take together; 0 where
// nobody knows.
func (p *planner) free() int64 {
	memory := p.backend.Memory()
	free := cmp.Or(memory.Free, memory.Total/2)
	if _, device := p.backend.(backends.Device); !device && free > 0 {
		free = max(1, free-p.options.HostCache) // which is the same memory
	}
	if most := p.options.Memory; most > 0 && (free == 0 || most < free) {
		return most
	}
	return free
}

// checkHost says whether the host has memory for what the device has no room for.
func (p *planner) checkHost() error {
	free := cpu.New(1).Memory().Free
	if want := p.options.HostCache; free > 0 && want > free {
		return fmt.Errorf("%w: %s of the host's memory are wanted for the cache, %s are free; lower the host's part of the cache",
			ErrMemory, bytesText(want), bytesText(free))
	}
	return nil
}

// fit is c with a cache as large as it may be, and whether one answer fits into it;
// one is what the engine takes with a cache for no more than that. Without a limit
// that was asked for, half of what is free beside the weights is left to others,
// unless a context that was asked for needs it.
func (p *planner) fit(c engine.Config) (sized engine.Config, one engine.Memory, ok bool, err error) {
	c.States = 1
	if one, err = c.Memory(p.program, p.backend); err != nil {
		return c, one, false, err
	}
	c.States = one.States
	need := int64(one.States) + int64(one.Scratch)
	free := p.free()
	left := free - int64(one.Weights)
	share := left
	switch {
	case free == 0:
		share = unknown
	case p.options.Memory == 0:
		share = left / 2
	}
	if need > share {
		return c, one, p.options.Context > 0 && (free == 0 || need <= left), nil
	}
	c.States, err = p.largest(c, one.States, share)
	return c, one, true, err
}

// largest is how large the cache may be where it and a step's scratch, which grows
// with it, take share bytes at most: least is what fits.
func (p *planner) largest(c engine.Config, least int, share int64) (int, error) {
	low, high := least, int(min(share, math.MaxInt))
	for c.States = high; ; c.States = low + (high-low)/2 {
		size, err := c.Memory(p.program, p.backend)
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

// tooLittle says what one answer takes, and what would make it fit.
func (p *planner) tooLittle(c engine.Config, one engine.Memory) error {
	free := p.free()
	have := "are free"
	if p.options.Memory > 0 && free == p.options.Memory {
		have = "may be taken"
	}
	where, ways := p.place(), p.ways(c, one)
	way := "take a smaller quantisation of the model"
	if len(ways) > 0 {
		way = "it would fit with " + strings.Join(ways, ", or with ")
	}
	if where != "" && !p.options.automatic() {
		way += ", or on the CPU"
	}
	if free <= int64(one.Weights) && free > 0 {
		return fmt.Errorf("%w: the weights take %s, %s %s%s; %s", ErrMemory, bytesText(int64(one.Weights)), bytesText(free), have, where, way)
	}
	return fmt.Errorf("%w: one answer of %d tokens takes %s of cache and %s of scratch beside %s of weights, %s %s%s; %s",
		ErrMemory, c.Context, bytesText(int64(one.States)), bytesText(int64(one.Scratch)), bytesText(int64(one.Weights)), bytesText(free), have, where, way)
}

// ways are the options with which c would fit, each by itself.
func (p *planner) ways(c engine.Config, one engine.Memory) (ways []string) {
	fits := func(c engine.Config, change func(*Options)) bool {
		other := *p
		change(&other.options)
		_, _, ok, err := other.fit(c)
		return ok && err == nil
	}
	asked := func(*Options) {}
	n := c.Context
	if p.options.Context > 0 {
		n = powerBelow(n)
	}
	for ; n > 1; n = powerBelow(n) {
		smaller := c
		if smaller.Context = n; fits(smaller, func(o *Options) { o.Context = n }) {
			ways = append(ways, fmt.Sprintf("a context of %d", n))
			break
		}
	}
	for _, cache := range []Cache{CacheF16, CacheQ8} {
		other := c
		other.Cache = cache.dtype(p.options.Activations)
		if other.Cache.BlockBytes()*c.Cache.BlockLen() < c.Cache.BlockBytes()*other.Cache.BlockLen() && cache.check(p.program) == nil && fits(other, asked) {
			ways = append(ways, fmt.Sprintf("a cache of %v", cache))
			break
		}
	}
	few := c
	if few.Parallel = 1; c.Parallel > 1 && fits(few, asked) {
		ways = append(ways, "one answer at one time")
	}
	need := int64(one.Weights) + int64(one.States) + int64(one.Scratch)
	if most := p.options.Memory; most > 0 && fits(c, func(o *Options) { o.Memory = need }) {
		ways = append(ways, fmt.Sprintf("a memory of %d MiB", (need+1<<20-1)>>20))
	}
	return ways
}

// place is where memory is free; empty for the processor.
func (p *planner) place() string {
	if d, ok := p.backend.(backends.Device); ok {
		return " on " + d.Description()
	}
	return ""
}

// powerBelow is the largest power of two below n.
func powerBelow(n int) int {
	p := 1
	for p*2 < n {
		p *= 2
	}
	return p
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// loader reports how far loading the weights has come, and gives back the pages of
// those that are not read from the file any more: at once, and by finish again, since
// the system may have mapped them beside what was read later.
func (m *Model) loader(progress func(Progress)) (loaded plan.Loaded, finish func()) {
	var at Progress
	var spare []*tensor.Tensor
	for _, w := range m.arch.Program.Weights() {
		at.Total += int64(w.Size())
	}
	loaded = func(w *tensor.Tensor, isSpare bool) {
		if isSpare {
			m.file.ReleaseTensor(w)
			spare = append(spare, w)
		}
		if at.Done += int64(w.Size()); progress != nil {
			progress(at)
		}
	}
	finish = func() {
		for _, w := range spare {
			m.file.ReleaseTensor(w)
		}
	}
	return loaded, finish
}
