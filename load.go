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

// start makes the model ready to run where o says.
func (m *Model) start(ctx context.Context, o *Options) (err error) {
	m.device.problem, err = o.use(ctx, m.arch.Program, m.arch.Spec.Context, func(p *memory.Planner) error { return m.startOn(ctx, p, o) })
	return err
}

// startOn makes the model ready to run on p's device, which closing the model closes.
func (m *Model) startOn(ctx context.Context, p *memory.Planner, o *Options) error {
	size, err := p.Config()
	if err != nil {
		return err
	}
	size.Watch, size.Kept = o.watch(), o.Kept.open(m.cacheKey(p, o, &size))
	var mapped []*tensor.Tensor // that are read from the file while the model runs
	loaded, finish := m.loader(o.Progress, &mapped)
	if p.Device.Kind.Host {
		mapped = tables(p.Program)
	}
	if m.engine, err = engine.New(ctx, p.Program, p.Backend, size, loaded); err != nil {
		return err
	}
	finish()
	streaming := p.Device.Streaming(p.Program, size.Limits(p.Program))
	m.device = modelDevice{Device: p.Device, streaming: newStreaming(&streaming), meter: memoryMeter{backend: p.Device}}
	m.parallel = size.Parallel
	if m.hostMemory, err = hostMemory(p, size); err != nil {
		return errors.Join(err, m.engine.Close())
	}
	if m.canary, err = newCanary(m.file, mapped, o.Damaged); err != nil {
		return errors.Join(err, m.engine.Close())
	}
	m.canary.start()
	m.close = sync.OnceValue(func() error {
		m.canary.stop()
		return errors.Join(m.engine.Close(), p.Device.Close(), m.file.Close())
	})
	return nil
}

// tables are the weights of p that steps read a few rows of, which stay in the file where a
// device computes in the host's memory, and are not reported as read from there.
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

// hostMemory is what was planned of the host's memory for the model.
func hostMemory(p *memory.Planner, size engine.Config) (int64, error) {
	use, err := size.Memory(p.Program, p.Device)
	if err != nil {
		return 0, err
	}
	n := int64(size.Host)
	if p.Device.Kind.Host {
		return n + int64(use.Weights) + int64(use.States) + int64(use.Scratch), nil
	}
	streaming := p.Device.Streaming(p.Program, size.Limits(p.Program))
	return n + int64(streaming.Pinned), nil
}

// loader reports how far loading the weights has come, and gives back the pages of
// those that are not read from the file any more: at once, and by finish again, since
// the system may have mapped them beside what was read later.
func (m *Model) loader(progress func(Progress), mapped *[]*tensor.Tensor) (loaded plan.Loaded, finish func()) {
	var at Progress
	var spare []*tensor.Tensor
	for _, w := range m.arch.Program.Weights() {
		at.Total += int64(w.Size())
	}
	loaded = func(w *tensor.Tensor, isSpare bool) {
		if isSpare {
			m.file.ReleaseTensor(w)
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
			m.file.ReleaseTensor(w)
		}
	}
	return loaded, finish
}
