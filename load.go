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
	options Options

	backend plan.Backend    // as the engine has it: with what is checked
	device  backends.Device // that it is of, or nil for the processor
}

// on has p plan for b.
func (p *planner) on(b plan.Backend) {
	p.device, _ = b.(backends.Device)
	p.backend = p.options.checked(b)
}

// config is what o says of an engine, with the context that the model was made for
// where o leaves it open.
func (p *planner) config() (engine.Config, error) {
	o := &p.options
	together := defaultParallel
	if p.device != nil {
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
	if err := p.checkLimits(); err != nil {
		return c, err
	}
	c, one, ok, err := p.search(c)
	switch {
	case err != nil:
		return c, fmt.Errorf("%w: %w", ErrMemory, err)
	case !ok:
		return c, p.tooLittle(c, one)
	}
	return c, nil
}

// limit is what was asked for as the most that the weights, the cache and a step's
// scratch may take together; 0: nothing was.
func (p *planner) limit() int64 {
	if p.device != nil {
		return p.options.DeviceMemory.Of(p.backend.Memory().Total)
	}
	return p.options.Memory
}

// free is what the weights, the cache and a step's scratch may take together; 0 where
// nobody knows.
func (p *planner) free() int64 {
	memory, limit := p.backend.Memory(), p.limit()
	if p.device != nil {
		return backends.Room(memory, limit)
	}
	free := cmp.Or(memory.Free, memory.Total/2)
	if free > 0 {
		free = max(1, free-p.options.HostCache) // which is the same memory
	}
	if limit > 0 && (free == 0 || limit < free) {
		return limit
	}
	return free
}

// pinned is what weights that stream may take of the host's memory.
func (p *planner) pinned() int {
	return backends.Pinned(cpu.New(1).Memory(), p.options.Memory, p.options.HostCache)
}

// checkLimits says whether the host has memory for what the device has no room for,
// and whether a limit of the device's memory means anything.
func (p *planner) checkLimits() error {
	free, may := cpu.New(1).Memory().Free, "are free"
	if most := p.options.Memory; p.device != nil && most > 0 && (free == 0 || most < free) {
		free, may = most, "may be taken"
	}
	if want := p.options.HostCache; free > 0 && want > free {
		return fmt.Errorf("%w: %s of the host's memory are wanted for the cache, %s %s; lower the host's part of the cache",
			ErrMemory, bytesText(want), bytesText(free), may)
	}
	if p.device != nil && p.options.DeviceMemory.any() && p.limit() == 0 {
		return fmt.Errorf("%w: %v may be taken%s, which does not say how much it has; say how many bytes may be taken",
			ErrMemory, p.options.DeviceMemory, p.place())
	}
	return nil
}

// fit is c with a cache as large as it may be, and whether one answer fits into it
// where weights are kept as w says; one is what the engine takes with a cache for no
// more than that. Without a limit that was asked for, half of what is free beside the
// weights is left to others, unless a context that was asked for needs it. Where
// weights take what the cache leaves, nothing is: the cache has a quarter of what is
// free beside the fewest, or what one answer needs.
func (p *planner) fit(c engine.Config, w placement) (sized engine.Config, one engine.Memory, ok bool, err error) {
	c.States, c.Weights, c.Pinned = 1, w.weights, 0
	if w.weights > 0 {
		c.Pinned = p.pinned()
	}
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
	case w.fill:
		share = left / 4
	case p.limit() == 0:
		share = left / 2
	}
	if need <= share {
		if c.States, err = p.largest(c, one.States, share); err != nil {
			return c, one, false, err
		}
	} else if brim := p.options.Context > 0 || w.brim && c.Context <= w.least; !brim || free > 0 && need > left {
		return c, one, false, nil
	}
	if w.fill && free > 0 {
		limits, err := backends.Beside(p.backend, p.program, c.Limits(p.program), free)
		if err != nil {
			return c, one, false, err
		}
		c.Weights = limits.Weights
	}
	return c, one, true, nil
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
	if limit := p.limit(); limit > 0 && free == limit {
		have = "may be taken"
	}
	streaming := ""
	if c.Weights > 0 {
		streaming = " where all that can stream do"
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
		return fmt.Errorf("%w: the weights take %s%s, %s %s%s; %s", ErrMemory, bytesText(int64(one.Weights)), streaming, bytesText(free), have, where, way)
	}
	return fmt.Errorf("%w: one answer of %d tokens takes %s of cache and %s of scratch beside %s of weights%s, %s %s%s; %s",
		ErrMemory, c.Context, bytesText(int64(one.States)), bytesText(int64(one.Scratch)), bytesText(int64(one.Weights)), streaming, bytesText(free), have, where, way)
}

// ways are the options with which c would fit, each by itself.
func (p *planner) ways(c engine.Config, one engine.Memory) (ways []string) {
	fits := func(c engine.Config, change func(*Options)) bool {
		other := *p
		change(&other.options)
		_, _, ok, err := other.search(c)
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
	if p.device != nil && p.options.StreamWeights == StreamNever && fits(c, func(o *Options) { o.StreamWeights = StreamAuto }) {
		ways = append(ways, "weights that stream")
	}
	if p.limit() == 0 {
		return ways
	}
	const mib = 1 << 20
	need := (int64(one.Weights) + int64(one.States) + int64(one.Scratch) + mib - 1) / mib
	memory, raise := "a memory", func(o *Options) { o.Memory = need * mib }
	if p.device != nil {
		memory, raise = "a device memory", func(o *Options) { o.DeviceMemory = MemoryLimit{Bytes: need * mib} }
	}
	if fits(c, raise) {
		ways = append(ways, fmt.Sprintf("%s of %d MiB", memory, need))
	}
	return ways
}

// place is where memory is free; empty for the processor.
func (p *planner) place() string {
	if p.device != nil {
		return " on " + p.device.Description()
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
