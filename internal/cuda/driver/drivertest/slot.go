package drivertest

import (
	"sync"
	"sync/atomic"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// A slot is one set of C functions. A process can have only a limited number, which are never
// freed, so fakes take turns using them.
type slot struct {
	fake    atomic.Pointer[Fake]
	symbols map[string]uintptr
}

var slots struct {
	mu   sync.Mutex
	free []*slot
}

func takeSlot(f *Fake) *slot {
	slots.mu.Lock()
	defer slots.mu.Unlock()
	var s *slot
	if n := len(slots.free); n > 0 {
		s = slots.free[n-1]
		slots.free = slots.free[:n-1]
	} else {
		s = &slot{symbols: map[string]uintptr{}}
		s.addDevices()
		s.addMemory()
		s.addStreams()
		s.addModules()
		s.addGraphs()
	}
	s.fake.Store(f)
	return s
}

func (s *slot) give() {
	slots.mu.Lock()
	defer slots.mu.Unlock()
	slots.free = append(slots.free, s)
}

// add creates a C function for f, whose parameters must each fit a register.
func (s *slot) add(symbol string, f any) { s.symbols[symbol] = newCallback(f) }

func (s *slot) call(name string, body func(f *Fake) driver.Code) uintptr {
	f := s.fake.Load()
	return uintptr(f.call(name, func() driver.Code { return body(f) }))
}

func (s *slot) callInContext(name string, body func(f *Fake, device int) driver.Code) uintptr {
	f := s.fake.Load()
	return uintptr(f.callInContext(name, func(device int) driver.Code { return body(f, device) }))
}
