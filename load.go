package realizar

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// start loads the model on the first device that o allows and that has room.
func (m *Model) start(ctx context.Context, o *Options) (err error) {
	m.device.problem, err = o.use(ctx, m.arch.Program, m.arch.Spec.Context, m.draft, func(p *memory.Planner) error { return m.startOn(ctx, p, o) })
	return err
}

// startOn loads the model on p's device. Closing the model closes the device.
func (m *Model) startOn(ctx context.Context, p *memory.Planner, o *Options) error {
	size, err := p.Config()
	if err != nil {
		return err
	}
	size.Watch, size.Kept, size.Events = o.watch(), o.Kept.open(m.cacheKey(p, o, &size)), o.cacheEvents(p.Program)
	if err := m.identify(ctx, p, o, &size); err != nil {
		return err
	}
	var mapped []*tensor.Tensor // weights that steps read from the file
	if m.draft != nil {
		if err := m.draft.start(ctx, p, m.Vocab()); err != nil {
			return err
		}
	}
	loaded, finish := m.loader(o.Progress, &mapped)
	if p.Device.Kind.Host {
		mapped = tables(p.Program)
	}
	if m.engine, err = engine.New(ctx, p.Program, p.Backend, size, loaded); err != nil {
		return errors.Join(err, m.draft.stop())
	}
	finish()
	streaming := p.Device.Streaming(p.Program, size.Limits(p.Program))
	m.device = modelDevice{Device: p.Device, streaming: newStreaming(&streaming), meter: memoryMeter{backend: p.Device}}
	m.parallel = size.Parallel
	if m.hostMemory, err = hostMemory(p, size); err != nil {
		return errors.Join(err, m.engine.Close(), m.draft.stop())
	}
	if m.canary, err = newCanary(m.files, mapped, o.Damaged); err != nil {
		return errors.Join(err, m.engine.Close(), m.draft.stop())
	}
	m.canary.start()
	m.close = sync.OnceValue(func() error {
		m.canary.stop()
		return errors.Join(m.engine.Close(), m.draft.stop(), p.Device.Close(), m.files.Close(), m.draft.close())
	})
	return nil
}

// tables returns the weights of p of which a step reads only a few rows, such as embeddings. A
// device that computes in host memory reads them from the file and does not report them to
// [plan.Loaded].
func tables(p *plan.Program) (all []*tensor.Tensor) {
	for i := range p.Nodes {
		for _, w := range p.Nodes[i].Weights() {
			if w.Role == plan.Table && w.Source == nil && !slices.Contains(all, w.Tensor) {
				all = append(all, w.Tensor)
			}
		}
	}
	return all
}

// hostMemory returns the bytes of host memory that are planned for the model.
func hostMemory(p *memory.Planner, size engine.Config) (int64, error) {
	use, err := size.Memory(p.Program, p.Device)
	if err != nil {
		return 0, err
	}
	n := int64(size.Host)
	if p.Device.Kind.Host {
		if p.Draft != nil {
			n += p.Draft.Total()
		}
		return n + int64(use.Weights) + int64(use.States) + int64(use.Scratch), nil
	}
	streaming := p.Device.Streaming(p.Program, size.Limits(p.Program))
	return n + int64(streaming.Pinned), nil
}

// loader returns a function to call after each loaded weight. It reports progress, adds weights
// that stay in the file to mapped, and releases the file pages of the others. finish releases these
// pages again, since the system may have mapped them anew while it read neighboring weights.
func (m *Model) loader(progress func(Progress), mapped *[]*tensor.Tensor) (loaded plan.Loaded, finish func()) {
	var at Progress
	var spare []*tensor.Tensor
	for _, w := range m.arch.Program.Weights() {
		at.Total += int64(w.Size())
	}
	loaded = func(w *tensor.Tensor, isSpare bool) {
		if isSpare {
			m.files.ReleaseTensor(w)
			spare = append(spare, w)
		} else if w.Source == nil && !slices.Contains(*mapped, w) {
			*mapped = append(*mapped, w)
		}
		if at.Done += int64(w.Size()); progress != nil {
			progress(at)
		}
	}
	finish = func() {
		for _, w := range spare {
			m.files.ReleaseTensor(w)
		}
	}
	return loaded, finish
}
