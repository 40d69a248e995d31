package tensor

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A FaultError reports memory that cannot be read. Tensors are often views of a mapped file;
// reading them faults if the file is truncated or its disk fails.
type FaultError struct {
	Addr uintptr // where the fault occurred
}

// Error returns a message with the address.
func (e *FaultError) Error() string {
	return fmt.Sprintf("tensor: internal error: the memory at %#x cannot be read", e.Addr)
}

// Fault returns the fault that a recovered panic reports, or nil if the panic has another reason.
func Fault(recovered any) *FaultError {
	if e, ok := recovered.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		return &FaultError{Addr: e.Addr()}
	}
	return nil
}

// Guard calls read and returns its error, or a [*FaultError] if read faults, which would otherwise
// end the process. This applies only to the calling goroutine: goroutines that read starts need
// their own Guard. Guard does not recover other panics.
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
