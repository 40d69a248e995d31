package realizar

import (
	"fmt"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// smallest is the context below which an automatic choice gives up.
const smallest = 512

// unknown is what an automatic choice takes where the system does not say what
// memory there is.
const unknown = 4 << 30

// sizes plans the memory: what the backend takes for weights of its own, and what
// the states and the scratch of the chosen context take, must be there before
// anything is loaded. Weights that steps read from the mapped file do not count,
// as the system can let go of them. An automatic choice leaves half of what is free
// beside the weights.
func sizes(m *arch.Model, b plan.Backend, o Options) (engine.Config, error) {
	c := engine.Config{Context: o.Context, Parallel: o.Parallel, Cache: o.Activations.cache(), Activations: o.Activations.products()}
	if c.Parallel == 0 {
		c.Parallel = defaultParallel
	}
	if c.Context > m.Spec.Context {
		return c, fmt.Errorf("%w: a context of %d tokens, but the model was made for %d", ErrOptions, c.Context, m.Spec.Context)
	}
	memory := b.Memory()
	free := memory.Free
	if free == 0 {
		free = memory.Total / 2
	}
	automatic := c.Context == 0
	if automatic {
		c.Context = m.Spec.Context
	}
	for {
		size, err := c.Memory(m.Program, b)
		weights, states, scratch := int64(size.Weights), int64(size.States), int64(size.Scratch)
		need, left := states+scratch, free-weights
		if err == nil && (need <= left/2 || automatic && free == 0 && need <= unknown) {
			return c, nil
		}
		if automatic && c.Context > smallest {
			c.Context = powerBelow(c.Context)
			continue
		}
		if err == nil && !automatic && (free == 0 || need <= left) {
			return c, nil
		}
		where, way := place(b, &o)
		if err == nil && free > 0 && left <= 0 {
			return c, fmt.Errorf("%w: the weights take %s, %s are free%s; take a smaller quantisation of the model%s",
				ErrMemory, bytesText(weights), bytesText(free), where, way)
		}
		return c, fmt.Errorf("%w: %d answers of %d tokens take %s of cache and %s of scratch beside %s of weights, %s are free%s; lower the context or the number of answers%s",
			ErrMemory, c.Parallel, c.Context, bytesText(states), bytesText(scratch), bytesText(weights), bytesText(free), where, way)
	}
}

// place is where memory is free, and the way out that a device has and the
// processor has not, unless it is taken anyway.
func place(b plan.Backend, o *Options) (where, way string) {
	d, ok := b.(backends.Device)
	if !ok {
		return "", ""
	}
	if where = " on " + d.Description(); o.automatic() {
		return where, ""
	}
	return where, ", or run it on the CPU"
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
		at.Total += int64(len(w.Data))
	}
	loaded = func(w *tensor.Tensor, isSpare bool) {
		if isSpare {
			m.file.Release(w.Data)
			spare = append(spare, w)
		}
		if at.Done += int64(len(w.Data)); progress != nil {
			progress(at)
		}
	}
	finish = func() {
		for _, w := range spare {
			m.file.Release(w.Data)
		}
	}
	return loaded, finish
}
