package realizar

import (
	"context"
	"errors"
	"sync"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// start makes the model ready to run where o says. If o leaves that open, it is the
// best device that nothing but the end of ctx keeps it from.
func (m *Model) start(ctx context.Context, o *Options) error {
	if err := o.suit(m.arch.Program, m.arch.Spec.Context); err != nil {
		return err
	}
	problem, err := o.use(ctx, func(device *backends.Device) error {
		if err := m.startOn(ctx, device, o); err != nil {
			return errors.Join(err, device.Close())
		}
		return nil
	})
	m.device.problem = problem
	return err
}

// startOn makes the model ready to run on a device, which closing the model closes.
func (m *Model) startOn(ctx context.Context, device *backends.Device, o *Options) error {
	memory, err := o.planner(device, m.arch.Program, m.arch.Spec.Context)
	if err != nil {
		return err
	}
	size, err := memory.Config()
	if err != nil {
		return err
	}
	size.Watch = o.watch()
	loaded, finish := m.loader(o.Progress)
	if m.engine, err = engine.New(ctx, m.arch.Program, memory.Backend, size, loaded); err != nil {
		return err
	}
	finish()
	streaming := device.Streaming(m.arch.Program, size.Limits(m.arch.Program))
	m.device = modelDevice{Device: device, streaming: newStreaming(&streaming), meter: memoryMeter{backend: device}}
	m.parallel = size.Parallel
	m.close = sync.OnceValue(func() error { return errors.Join(m.engine.Close(), device.Close(), m.file.Close()) })
	return nil
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
