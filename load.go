package realizar

import (
	"context"
	"fmt"
	"runtime"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// smallest is the context below which an automatic choice gives up.
const smallest = 512

// unknown is what an automatic choice takes where the system does not say what
// memory there is.
const unknown = 4 << 30

// sizes plans the memory: what the states and the scratch of the chosen context
// take must be there before anything is loaded. Weights are mapped from the
// file and can be let go of, so they do not count.
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
		states, scratch, err := c.Bytes(m.Program, b)
		need := int64(states) + int64(scratch)
		if err == nil && (need <= free/2 || automatic && free == 0 && need <= unknown) {
			return c, nil
		}
		if automatic && c.Context > smallest {
			c.Context = powerBelow(c.Context)
			continue
		}
		if err == nil && !automatic && (free == 0 || need <= free) {
			return c, nil
		}
		return c, fmt.Errorf("%w: %d answers of %d tokens take %s of cache and %s of scratch, %s are free; lower the context or the number of answers",
			ErrMemory, c.Parallel, c.Context, bytesText(int64(states)), bytesText(int64(scratch)), bytesText(free))
	}
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

// load touches every page of the weights, in the order of their use, so that the
// first step does not wait for the disk.
func load(ctx context.Context, p *plan.Program, progress func(Progress)) error {
	weights := p.Weights()
	var at Progress
	for _, w := range weights {
		at.Total += int64(len(w.Data))
	}
	var touched byte
	for _, w := range weights {
		const block, page = 64 << 20, 4096
		for data := w.Data; len(data) > 0; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := min(block, len(data))
			for i := 0; i < n; i += page {
				touched ^= data[i]
			}
			data = data[n:]
			at.Done += int64(n)
			if progress != nil {
				progress(at)
			}
		}
	}
	runtime.KeepAlive(touched)
	return nil
}
