// Package backends is the list of the kinds of device that a binary can run models
// on beside the processor. A package that holds such a backend adds it here when it
// is imported, so that a binary without it does not carry it.
//
// It knows how devices are named and chosen, and none of them.
package backends

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/plan"
)

// A Device is a backend that holds a device until it is closed.
type Device interface {
	plan.Backend
	// Description is what the device is called: "NVIDIA H200".
	Description() string
	// Kernels says, a line for each part of p that is done as one, which kernels do it.
	Kernels(p *plan.Program, l plan.Limits) []string
	// Bandwidth measures how fast the device reads its memory, in bytes a second.
	Bandwidth(ctx context.Context) (float64, error)
	// Link measures how fast pinned memory of the host is copied to the device, in bytes
	// a second.
	Link(ctx context.Context) (float64, error)
	// Streaming is where the weights of p lie with these limits.
	Streaming(p *plan.Program, l plan.Limits) plan.Streaming
	// Close lets go of the device, when what was compiled on it is closed.
	Close() error
}

// A Kind is a kind of device.
type Kind struct {
	Name string // what a user calls it: "cuda"
	// Open opens a device by its number, from 0. The error is [ErrAbsent] where the
	// system has no sign of such devices.
	Open func(index int) (Device, error)
}

// ErrAbsent says that nothing in the system speaks of devices of a kind: there is no
// driver for them. See [Absent].
var ErrAbsent = errors.New("there is no such device")

// Absent is err, which is [ErrAbsent] too.
func Absent(err error) error { return absent{err} }

type absent struct{ error }

func (a absent) Unwrap() error      { return a.error }
func (absent) Is(target error) bool { return target == ErrAbsent }

// The names of no kind.
const (
	auto = "auto" // the best there is; so is an empty name
	cpu  = "cpu"
)

// A List is kinds of device, the best first.
type List []Kind

// All are the kinds of this binary. They are added while packages are initialised
// and do not change afterwards.
var All List

// Register adds a kind of device to [All].
func Register(k Kind) { All = append(All, k) }

// Automatic reports whether a name leaves the choice open.
func Automatic(name string) bool { return name == "" || name == auto }

// Check says what is wrong with a device's name.
func (l List) Check(name string) error {
	_, _, err := l.find(name)
	return err
}

// find is the kind and the number that a name asks for. The kind is nil where that
// is the processor or open.
func (l List) find(name string) (*Kind, int, error) {
	if Automatic(name) || name == cpu {
		return nil, 0, nil
	}
	kind, number, numbered := strings.Cut(name, ":")
	for i := range l {
		if l[i].Name != kind {
			continue
		}
		if !numbered {
			return &l[i], 0, nil
		}
		index, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return nil, 0, fmt.Errorf("device %q: want %s, or %s:1 for the one with the number 1", name, kind, kind)
		}
		return &l[i], int(index), nil
	}
	names := []string{auto, cpu}
	for _, k := range l {
		names = append(names, k.Name)
	}
	return nil, 0, fmt.Errorf("device %q is not in this build; use %s", name, oneOf(names))
}

// oneOf is names as a sentence has them.
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Open opens the device that a name asks for, or none where that is the processor.
// When the choice is open it is the first that can be opened, and otherwise passed
// is what is wrong with one that the system speaks of, or where one is wanted, why
// there is none.
func (l List) Open(name string, wanted bool) (d Device, passed, err error) {
	kind, index, err := l.find(name)
	switch {
	case err != nil:
		return nil, nil, err
	case kind != nil:
		d, err = kind.Open(index)
		return d, nil, err
	case name == cpu:
		return nil, nil, nil
	}
	for _, k := range l {
		d, err := k.Open(0)
		if err == nil {
			return d, nil, nil
		}
		if absent := errors.Is(err, ErrAbsent); !absent && (passed == nil || errors.Is(passed, ErrAbsent)) || absent && wanted && passed == nil {
			passed = err
		}
	}
	if wanted && len(l) == 0 {
		passed = fmt.Errorf("%w: this build has none but the processor", ErrAbsent)
	}
	return nil, passed, nil
}
