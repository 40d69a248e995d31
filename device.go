package realizar

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/plan"
)

// A modelDevice is where a model runs.
type modelDevice struct {
	*backends.Device
	problem   error      // with the device that would have been the choice
	streaming *Streaming // nil where no weights stream
	meter     memoryMeter
}

// memory is how the device's memory stands.
func (d *modelDevice) memory() DeviceMemory {
	m := DeviceMemory{Name: cmp.Or(d.Description(), d.Name())}
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
