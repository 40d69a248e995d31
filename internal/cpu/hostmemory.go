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
		return nil, fmt.Errorf("cpu: %d bytes wanted for pages; a size is above zero", n)
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
		return fmt.Errorf("cpu: no memory of AllocHost begins at %p", start)
	}
	delete(e.host, start)
	e.workers.post(freeing(memory))
	return nil
}

// freeing is a task that gives memory back: steps posted before it may use that.
type freeing []byte

func (f freeing) run() { release(f) }
