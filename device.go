package realizar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// deviceInfo is where a model runs.
type deviceInfo struct {
	name        string
	description string     // empty for the processor
	problem     error      // with the device that would have been the choice
	streaming   *Streaming // nil where no weights stream
	meter       *memoryMeter
}

// memory is how the device's memory stands.
func (d *deviceInfo) memory() DeviceMemory {
	m := DeviceMemory{Name: cmp.Or(d.description, d.name)}
	free := d.meter.read()
	m.Free, m.Total = free.Free, free.Total
	return m
}

// memoryAge is how old a reading of a device's memory may be. A device answers
// between steps, and those who ask often shall not slow these down.
const memoryAge = 200 * time.Millisecond

// A memoryMeter reads a backend's memory.
type memoryMeter struct {
	backend plan.Backend
	reading sync.Mutex // held by who reads
	last    atomic.Pointer[memoryReading]
}

type memoryReading struct {
	plan.MemoryInfo
	at time.Time
}

// read is the last reading, or a new one where that is old and nobody else is about
// to read.
func (m *memoryMeter) read() plan.MemoryInfo {
	last := m.last.Load()
	if (last == nil || time.Since(last.at) > memoryAge) && m.reading.TryLock() {
		defer m.reading.Unlock()
		last = &memoryReading{m.backend.Memory(), time.Now()}
		m.last.Store(last)
	}
	if last == nil {
		return plan.MemoryInfo{}
	}
	return last.MemoryInfo
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
			m.device.name, m.device.description, m.device.meter = device.Name(), device.Description(), &memoryMeter{backend: device}
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
	m.device = deviceInfo{name: processor.Name(), problem: problem, meter: &memoryMeter{backend: processor}}
	return m.startOn(ctx, processor, func() error { return nil }, o)
}

// startOn makes the model ready to run on b, which closing the model lets go.
func (m *Model) startOn(ctx context.Context, b plan.Backend, letGo func() error, o *Options) error {
	memory := planner{program: m.arch.Program, made: m.arch.Spec.Context, options: *o}
	memory.on(b)
	size, err := memory.sizes()
	if err != nil {
		return err
	}
	size.Watch = o.watch()
	loaded, finish := m.loader(o.Progress)
	if m.engine, err = engine.New(ctx, m.arch.Program, memory.backend, size, loaded); err != nil {
		return err
	}
	finish()
	if memory.device != nil {
		streaming := memory.device.Streaming(m.arch.Program, size.Limits(m.arch.Program))
		m.device.streaming = newStreaming(&streaming)
	}
	m.parallel = size.Parallel
	m.close = sync.OnceValue(func() error { return errors.Join(m.engine.Close(), letGo(), m.file.Close()) })
	return nil
}
