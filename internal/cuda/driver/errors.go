package driver

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors of this package. Errors wrap them; compare with [errors.Is].
var (
	// ErrNoDriver reports that the driver library is missing or unusable.
	ErrNoDriver = errors.New("no usable NVIDIA driver")
	// ErrNoDevice reports that the driver shows no GPU.
	ErrNoDevice = errors.New("no NVIDIA GPU is visible")
	// ErrTooOld reports a driver before CUDA 12.1.
	ErrTooOld = errors.New("the NVIDIA driver is too old")
	// ErrOutOfMemory reports that device memory, or pinned host memory, is exhausted.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrDeviceLost reports that a fault has destroyed the context. Device memory can no longer be
	// used.
	ErrDeviceLost = errors.New("the device is lost")
	// ErrNoPeer reports a device whose kernels cannot reach the memory of another one.
	ErrNoPeer = errors.New("devices that cannot reach each other's memory")
	// ErrClosed reports a closed context.
	ErrClosed = errors.New("the CUDA context is closed")
)

// A Code is the result of a driver call, a CUresult.
type Code uint32

// The codes that this package or its tests distinguish.
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
	PeerUnsupported      Code = 217
	NVLinkUncorrectable  Code = 220
	Contained            Code = 226
	InvalidHandle        Code = 400
	NotFound             Code = 500
	NotReady             Code = 600
	IllegalAddress       Code = 700
	LaunchOutOfResources Code = 701
	LaunchTimeout        Code = 702
	PeerAlreadyEnabled   Code = 704
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

// Lost reports whether the code means that the context is destroyed.
func (c Code) Lost() bool {
	switch c {
	case ECCUncorrectable, NVLinkUncorrectable, Contained, IllegalAddress, LaunchTimeout,
		ContextIsDestroyed, Assert, HardwareStackError, IllegalInstruction, MisalignedAddress,
		InvalidAddressSpace, InvalidPC, LaunchFailed, Unknown:
		return true
	}
	return false
}

// An Error is a failed driver call. The device works asynchronously, so a later call may report a
// kernel's fault.
type Error struct {
	Call   string // the name in CUDA's documentation: cuMemAlloc
	Code   Code
	Name   string // CUDA_ERROR_OUT_OF_MEMORY
	Text   string // the driver's description
	Doing  string // the caller's activity; see [Context.Doing]; may be empty
	Detail string // sizes, or the compiler's log; may be empty
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

// Is matches [ErrOutOfMemory] and [ErrDeviceLost].
func (e *Error) Is(target error) bool {
	return target == ErrOutOfMemory && e.Code == OutOfMemory || target == ErrDeviceLost && e.Code.Lost()
}
