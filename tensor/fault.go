package tensor

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A FaultError is memory that cannot be read. Tensors are often views of a mapped
// file, and those have it where the file is cut short or its disk fails.
type FaultError struct {
	Addr uintptr // where reading ended
}

// Error says where reading ended.
func (e *FaultError) Error() string {
	return fmt.Sprintf("tensor: internal error: the memory at %#x cannot be read", e.Addr)
}

// Fault returns what a recovered panic says about memory that could not be read,
// or nil where it is about something else.
func Fault(recovered any) *FaultError {
	if e, ok := recovered.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		return &FaultError{Addr: e.Addr()}
	}
	return nil
}

// Guard calls read and returns its error, or a [*FaultError] where read comes to
// memory that cannot be read, which would end the process otherwise. That holds
// for this goroutine: those that read starts need a Guard of their own. Any other
// panic of read goes on.
func Guard(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fault := Fault(r)
			if fault == nil {
				panic(r)
			}
			err = fault
		}
	}()
	return read()
}
