package realizar

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/plan"
)

// A modelDevice is the device that a model runs on.
type modelDevice struct {
	*backends.Device
	problem   error      // why the preferred device was skipped
	streaming *Streaming // nil if no weights stream
	meter     memoryMeter
}

// memory returns the free and total memory of the device.
func (d *modelDevice) memory() DeviceMemory {
	m := DeviceMemory{Name: cmp.Or(d.Description(), d.Name())}
	free := d.meter.read()
	m.Free, m.Total = free.Free, free.Total
	return m
}

// memoryAge is the age up to which a reading of a device's memory is reused. A device answers
// between steps, so frequent readings would slow steps down.
const memoryAge = time.Second

// A memoryMeter reads the memory of all devices of a model together and caches the reading.
type memoryMeter struct {
	devices []memoryReader
	reading sync.Mutex // held while reading
	last    atomic.Pointer[memoryReading]
}

type memoryReader interface{ Memory() plan.MemoryInfo }

type memoryReading struct {
	plan.MemoryInfo
	at time.Time
}

// read returns the last reading. It reads anew if that is older than memoryAge, unless another
// goroutine is reading.
func (m *memoryMeter) read() plan.MemoryInfo {
	last := m.last.Load()
	if (last == nil || time.Since(last.at) > memoryAge) && m.reading.TryLock() {
		defer m.reading.Unlock()
		last = &memoryReading{at: time.Now()}
		for _, d := range m.devices {
			own := d.Memory()
			last.Free, last.Total = last.Free+own.Free, last.Total+own.Total
		}
		m.last.Store(last)
	}
	if last == nil {
		return plan.MemoryInfo{}
	}
	return last.MemoryInfo
}
