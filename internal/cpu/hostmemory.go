package cpu

import (
	"errors"
	"fmt"
	"unsafe"
)

// AllocHost implements [plan.Executable].
func (e *executable) AllocHost(n int) ([]byte, error) {
	if e.closed {
		return nil, errors.New("cpu: the executable is closed")
	}
	if n <= 0 {
		return nil, fmt.Errorf("cpu: cannot allocate %d bytes for pages; want a positive number", n)
	}
	b, err := reserve(n)
	if err != nil {
		return nil, err
	}
	if e.host == nil {
		e.host = map[*byte][]byte{}
	}
	e.host[unsafe.SliceData(b)] = b
	return b, nil
}

// FreeHost implements [plan.Executable].
func (e *executable) FreeHost(b []byte) error {
	start := unsafe.SliceData(b)
	memory, found := e.host[start]
	if !found {
		return fmt.Errorf("cpu: FreeHost of memory at %p, which AllocHost did not return", start)
	}
	delete(e.host, start)
	e.workers.post(freeing(memory))
	return nil
}

// freeing is a task that frees memory after all earlier tasks, which may use it.
type freeing []byte

func (f freeing) run() { release(f) }
