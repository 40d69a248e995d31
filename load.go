package realizar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// start loads the model on the first device that o allows and that has room, or each replica on one.
func (m *Model) start(ctx context.Context, o *Options) (err error) {
	m.device.problem, err = o.use(ctx, m.arch.Program, m.arch.Spec.Context, m.draft, func(all []replica) error { return m.startOn(ctx, all, o) })
	return err
}

// startOn loads a replica on each device of the plans. Closing the model closes the devices.
func (m *Model) startOn(ctx context.Context, all []replica, o *Options) error {
	sizes, err := sizesOf(all)
	if err != nil {
		return err
	}
	first, watch := &all[0], o.watch()
	kept, events := o.Kept.open(m.cacheKey(first.Planner, o, &sizes[0]), len(all)), o.newCacheEvents(first.Program, len(all))
	for i := range sizes {
		sizes[i].Watch, sizes[i].Kept, sizes[i].Events = watch.of(i), kept[i], events.of(i)
	}
	if err := m.identify(ctx, first.Planner, o, &sizes[0]); err != nil {
		return err
	}
	var mapped []*tensor.Tensor // weights that steps read from the file
	loaded, finish := m.loader(o.Progress, len(all), &mapped)
	if first.Device.Kind.Host {
		mapped = tables(first.Program)
	}
	engines, err := m.startAll(ctx, all, sizes, loaded)
	if err != nil {
		return err
	}
	m.engine = engine.NewGroup(engines, events.took(engines))
	stop := func() error {
		err := m.engine.Close()
		for i := range all {
			err = errors.Join(err, all[i].draft.stop())
		}
		return err
	}
	finish()
	streaming := first.Device.Streaming(first.Program, sizes[0].Limits(first.Program))
	m.device = modelDevice{Device: first.Device, streaming: newStreaming(&streaming)}
	for i := range all {
		m.device.meter.devices = append(m.device.meter.devices, all[i].Device)
		n, err := hostMemory(all[i].Planner, sizes[i])
		if err != nil {
			return errors.Join(err, stop())
		}
		m.hostMemory += n
		m.parallel += sizes[i].Parallel
	}
	if m.canary, err = newCanary(m.files, mapped, o.Damaged); err != nil {
		return errors.Join(err, stop())
	}
	m.canary.start()
	m.close = sync.OnceValue(func() error {
		m.canary.stop()
		err := stop()
		for i := range all {
			err = errors.Join(err, all[i].Device.Close())
		}
		return errors.Join(err, m.files.Close(), m.draft.close())
	})
	return nil
}

// sizesOf returns the sizes of the replicas' engines. They have the longest context for which all
// have room.
func sizesOf(all []replica) (sizes []engine.Config, err error) {
	sizes = make([]engine.Config, len(all))
	least := 0
	for i := range all {
		if sizes[i], err = all[i].Config(); err != nil {
			return nil, replicaError(all, i, err)
		}
		if i == 0 || sizes[i].Context < least {
			least = sizes[i].Context
		}
	}
	for i := range all {
		if sizes[i].Context == least {
			continue
		}
		all[i].Options.Context = least
		if sizes[i], err = all[i].Config(); err != nil {
			return nil, replicaError(all, i, err)
		}
	}
	return sizes, nil
}

// replicaError adds the number of the replica to err if there are several.
func replicaError(all []replica, i int, err error) error {
	if len(all) == 1 {
		return err
	}
	return fmt.Errorf("replica %d of %d: %w", i, len(all), err)
}

// startAll loads all replicas at the same time, with their draft models.
func (m *Model) startAll(ctx context.Context, all []replica, sizes []engine.Config, loaded plan.Loaded) ([]*engine.Engine, error) {
	engines := make([]*engine.Engine, len(all))
	loads, ctx := errgroup.WithContext(ctx)
	for i := range all {
		loads.Go(func() error {
			err := m.draft.guard(func() error {
				return m.files.Guard(func() (err error) {
					p := &all[i]
					if p.draft != nil {
						if err := p.draft.start(ctx, p.Planner, m.Vocab()); err != nil {
							return err
						}
					}
					engines[i], err = engine.New(ctx, p.Program, p.Backend, sizes[i], loaded)
					return err
				})
			})
			if err != nil {
				return replicaError(all, i, err)
			}
			return nil
		})
	}
	err := loads.Wait()
	if err == nil {
		return engines, nil
	}
	for i, e := range engines {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
		err = errors.Join(err, all[i].draft.stop())
	}
	return nil, err
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

// loader returns a function to call after each loaded weight of each of n replicas. It reports
// progress, adds weights that stay in the file to mapped, and releases the file pages of the others.
// finish releases these pages again, since the system may have mapped them anew while it read
// neighboring weights.
func (m *Model) loader(progress func(Progress), n int, mapped *[]*tensor.Tensor) (loaded plan.Loaded, finish func()) {
	var mu sync.Mutex
	var at Progress
	var spare []*tensor.Tensor
	for _, w := range m.arch.Program.Weights() {
		at.Total += int64(n) * int64(w.Size())
	}
	loaded = func(w *tensor.Tensor, isSpare bool) {
		mu.Lock()
		defer mu.Unlock()
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
