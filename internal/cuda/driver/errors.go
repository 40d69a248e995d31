package driver

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of error of this package. They are wrapped with what they are about,
// so compare with [errors.Is].
var (
	// ErrNoDriver says that the driver's library is missing or cannot be used.
	ErrNoDriver = errors.New("no usable NVIDIA driver")
	// ErrNoDevice says that the driver shows no GPU.
	ErrNoDevice = errors.New("no NVIDIA GPU is visible")
	// ErrTooOld says that the driver is of a version before CUDA 12.1.
	ErrTooOld = errors.New("the NVIDIA driver is too old")
	// ErrOutOfMemory says that the device, or the host's memory for it, is full.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrDeviceLost says that a fault has ended the context: nothing that was in
	// the device's memory can be used any more.
	ErrDeviceLost = errors.New("the device is lost")
	// ErrClosed says that the context was closed.
	ErrClosed = errors.New("the CUDA context is closed")
)

// A Code is what a call of the driver returns, a CUresult.
type Code uint32

// The codes that this package or its tests tell apart.
const (
	Success              Code = 0
	InvalidValue         Code = 1
	OutOfMemory          Code = 2
	NotInitialized       Code = 3
	StubLibrary          Code = 34
	NoDevice             Code = 100
	InvalidDevice        Code = 101
	InvalidImage         Code = 200
	InvalidContext       Code = 201
	ECCUncorrectable     Code = 214
	InvalidPTX           Code = 218
	NVLinkUncorrectable  Code = 220
	Contained            Code = 226
	InvalidHandle        Code = 400
	NotFound             Code = 500
	NotReady             Code = 600
	IllegalAddress       Code = 700
	LaunchOutOfResources Code = 701
	LaunchTimeout        Code = 702
	ContextIsDestroyed   Code = 709
	Assert               Code = 710
	HardwareStackError   Code = 714
	IllegalInstruction   Code = 715
	MisalignedAddress    Code = 716
	InvalidAddressSpace  Code = 717
	InvalidPC            Code = 718
	LaunchFailed         Code = 719
	NotSupported         Code = 801
	SystemDriverMismatch Code = 803
	CaptureUnsupported   Code = 900
	CaptureInvalidated   Code = 901
	Unknown              Code = 999
)

// Lost reports whether a context that has returned the code is at its end.
func (c Code) Lost() bool {
	switch c {
	case ECCUncorrectable, NVLinkUncorrectable, Contained, IllegalAddress, LaunchTimeout,
		ContextIsDestroyed, Assert, HardwareStackError, IllegalInstruction, MisalignedAddress,
		InvalidAddressSpace, InvalidPC, LaunchFailed, Unknown:
		return true
	}
	return false
}

// An Error is a call of the driver that failed. The device works behind the
// host's back, so a fault of a kernel is reported by whichever call comes next.
type Error struct {
	Call   string // as CUDA's documentation names it: cuMemAlloc
	Code   Code
	Name   string // CUDA_ERROR_OUT_OF_MEMORY
	Text   string // what the driver says of it
	Doing  string // what the caller was at, see [Context.Doing]; may be empty
	Detail string // sizes, or a compiler's log; may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cuda: ")
	if e.Doing != "" {
		fmt.Fprintf(&b, "%s: ", e.Doing)
	}
	fmt.Fprintf(&b, "%s: %s (%s)", e.Call, e.Text, e.Name)
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Code.Lost() {
		b.WriteString("; the context is of no more use: close it and open another, or restart the process where that fails too")
	}
	return b.String()
}

// Is tells [ErrOutOfMemory] and [ErrDeviceLost].
func (e *Error) Is(target error) bool {
	return target == ErrOutOfMemory && e.Code == OutOfMemory || target == ErrDeviceLost && e.Code.Lost()
}
