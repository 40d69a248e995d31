package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// AllocHost implements [plan.Executable].
func (e *executable) AllocHost(n int) (b []byte, err error) {
	if e.closed {
		return nil, errors.New("cuda: the executable is closed")
	}
	c := e.b.Main
	err = c.Do(func() error {
		defer c.Doing(c.Doing("making room for pages in the host's memory"))
		b, err = c.AllocHost(n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	e.host[unsafe.SliceData(b)] = b
	return b, nil
}

// FreeHost implements [plan.Executable]. The device may still copy from and to b, so FreeHost waits
// for the submitted steps.
func (e *executable) FreeHost(b []byte) error {
	memory, found := e.host[unsafe.SliceData(b)]
	if !found {
		return fmt.Errorf("cuda: no memory of AllocHost begins at %p", unsafe.SliceData(b))
	}
	e.conducted()
	err := e.b.Main.Do(func() error {
		if err := e.stream.Synchronize(); err != nil {
			return err
		}
		return e.b.Main.FreeHost(memory)
	})
	if err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	delete(e.host, unsafe.SliceData(memory))
	return nil
}
