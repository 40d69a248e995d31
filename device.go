package realizar

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// deviceInfo is where a model runs.
type deviceInfo struct {
	name        string
	description string // empty for the processor
	problem     error  // with the device that would have been the choice
}

// start makes the model ready to run where o says. Where o leaves that open, it is
// on the processor when anything but the end of ctx keeps it from a device.
func (m *Model) start(ctx context.Context, o *Options) error {
	device, problem, err := o.device()
	if err != nil {
		return err
	}
	if device != nil {
		err := m.startOn(ctx, device, device.Close, o)
		if err == nil {
			m.device = deviceInfo{name: device.Name(), description: device.Description()}
			return nil
		}
		if err = errors.Join(err, device.Close()); !o.automatic() || ctx.Err() != nil {
			return err
		}
		problem = fmt.Errorf("%s: %w", device.Description(), err)
	}
	processor, err := o.processor()
	if err != nil {
		return err
	}
	m.device = deviceInfo{name: processor.Name(), problem: problem}
	return m.startOn(ctx, processor, func() error { return nil }, o)
}

// startOn makes the model ready to run on b, which closing the model lets go.
func (m *Model) startOn(ctx context.Context, b plan.Backend, letGo func() error, o *Options) error {
	memory := planner{program: m.arch.Program, made: m.arch.Spec.Context, backend: b, options: *o}
	size, err := memory.sizes()
	if err != nil {
		return err
	}
	size.Watch = o.watch()
	loaded, finish := m.loader(o.Progress)
	if m.engine, err = engine.New(ctx, m.arch.Program, b, size, loaded); err != nil {
		return err
	}
	finish()
	m.parallel = size.Parallel
	m.close = sync.OnceValue(func() error { return errors.Join(m.engine.Close(), letGo(), m.file.Close()) })
	return nil
}
