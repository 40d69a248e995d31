// Package backends is the list of the kinds of device that a binary can run models
// on. The processor is always the last of them. A package that holds another kind
// adds it here when it is imported, so that a binary without it does not carry it.
//
// It knows how devices are named and chosen, and what planning asks of a kind.
package backends

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/nearest"
	"github.com/realizar/realizar/internal/plan"
)

// A Backend is a [plan.Backend] that holds a device until it is closed.
type Backend interface {
	plan.Backend
	// Description is what the device is called: "NVIDIA H200". It is empty where the
	// name of its kind says all.
	Description() string
	// Kernels says, a line for each part of p that is done as one, which kernels do it;
	// nil where the plan's operations are these parts.
	Kernels(p *plan.Program, l plan.Limits) []string
	// Bandwidth measures how fast the device reads its memory, in bytes a second.
	Bandwidth(ctx context.Context) (float64, error)
	// Link measures how fast pinned memory of the host is copied to the device, in bytes
	// a second; 0 where there is nothing to copy.
	Link(ctx context.Context) (float64, error)
	// Streaming is where the weights of p lie with these limits.
	Streaming(p *plan.Program, l plan.Limits) plan.Streaming
	// Close lets go of the device, when what was compiled on it is closed.
	Close() error
}

// A Kind is a kind of device.
type Kind struct {
	Name string // what a user calls it: "cuda"
	// Host says that there is one device of the kind, which computes in the host's
	// memory: no limit of a device's memory applies, weights are mapped or laid out there
	// and never stream, and nothing has to be copied.
	Host bool
	// Parallel is how many answers are under way at one time where nothing else is asked
	// for, 1 or more.
	Parallel int
	// Chunk and Gap are those of an engine, see [engine.Config]; 0 for its defaults.
	Chunk int
	Gap   time.Duration
	// Open opens a device. The error is [ErrAbsent] where the system has no sign of such
	// devices.
	Open func(o Options) (Backend, error)
}

// Options are what a device is opened with.
type Options struct {
	Index int // of the device among those of its kind, from 0

	// Of the processor: how many threads share the work, 0 for one for each core that
	// the process may use, and the name of the instructions to compute with, empty for
	// the best that there are.
	Threads int
	Kernels string
}

// A Device is an opened device.
type Device struct {
	Backend
	Kind Kind
}

// ErrAbsent says that nothing in the system speaks of devices of a kind: there is no
// driver for them. See [Absent].
var ErrAbsent = errors.New("there is no such device")

// Absent is err, which is [ErrAbsent] too.
func Absent(err error) error { return absent{err} }

type absent struct{ error }

func (a absent) Unwrap() error      { return a.error }
func (absent) Is(target error) bool { return target == ErrAbsent }

// A List is kinds of device, the best first. The last one is of the host.
type List []Kind

// All are the kinds of this binary. They are added while packages are initialised
// and do not change afterwards.
var All = List{Processor}

// Register adds a kind of device to [All].
func Register(k Kind) { All = append(All[:len(All)-1:len(All)-1], k, Processor) }

// auto is the best device that there is; so is an empty name.
const auto = "auto"

// Automatic reports whether a name leaves the choice open.
func Automatic(name string) bool { return name == "" || name == auto }

// Kind is the kind that is called so; the zero Kind where there is none.
func (l List) Kind(name string) Kind {
	for _, k := range l {
		if k.Name == name {
			return k
		}
	}
	return Kind{}
}

// A Choice says which devices may be opened.
type Choice struct {
	// Name is that of a kind, with a number where there are several: "cuda:1". Where it
	// leaves the choice open, it is the best device that can be opened, or that of the
	// host where Kernels are named.
	Name    string
	Threads int    // as in [Options]
	Kernels string // as in [Options]
	// Memory says that a device with memory of its own is wanted, so that there is
	// something to say where none is in the system.
	Memory bool
}

// Automatic reports whether any kind may be meant.
func (c Choice) Automatic() bool { return Automatic(c.Name) && c.Kernels == "" }

// Check says what is wrong with a choice's name.
func (l List) Check(c Choice) error {
	_, _, err := l.find(c)
	return err
}

// Host reports whether a choice is the host's device and no other.
func (l List) Host(c Choice) bool {
	kinds, _, err := l.find(c)
	return err == nil && !c.Automatic() && kinds[0].Host
}

// find are the kinds that c may mean, and the number of the device.
func (l List) find(c Choice) (List, int, error) {
	if c.Automatic() {
		return l, 0, nil
	}
	if Automatic(c.Name) {
		return l[len(l)-1:], 0, nil
	}
	name, number, numbered := strings.Cut(c.Name, ":")
	i := slices.IndexFunc(l, func(k Kind) bool { return k.Name == name && (!k.Host || !numbered) })
	switch {
	case i < 0:
		names := []string{auto, l[len(l)-1].Name}
		for _, k := range l[:len(l)-1] {
			names = append(names, k.Name)
		}
		return nil, 0, fmt.Errorf("device %q is not in this build; use %s", c.Name, nearest.OneOf(names))
	case !numbered:
		return l[i : i+1], 0, nil
	}
	index, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return nil, 0, fmt.Errorf("device %q: want %s, or %s:1 for the one with the number 1", c.Name, name, name)
	}
	return l[i : i+1], int(index), nil
}

// Open opens the best device that c may mean. passed is as [List.Use] has it.
func (l List) Open(c Choice) (d *Device, passed, err error) {
	passed, err = l.Use(context.Background(), c, func(opened *Device) error {
		d = opened
		return nil
	})
	return d, passed, err
}

// Use opens the devices that c may mean, the best first, until use returns nil for one,
// which is the caller's to close; the others are closed. The error is that of the last device, or of the
// one during which ctx ended. If the host's device is taken though c is automatic,
// passed is what is wrong with one that the system speaks of, or if c wants memory of
// its own, why there is none.
func (l List) Use(ctx context.Context, c Choice, use func(*Device) error) (passed, err error) {
	kinds, index, err := l.find(c)
	if err != nil {
		return nil, err
	}
	if c.Memory && len(kinds) == 1 && c.Automatic() {
		passed = fmt.Errorf("%w: this build has none but the processor", ErrAbsent)
	}
	for i, k := range kinds {
		opened, err := k.Open(Options{Index: index, Threads: c.Threads, Kernels: c.Kernels})
		problem := err
		if err == nil {
			if err = use(&Device{opened, k}); err != nil {
				err = errors.Join(err, opened.Close())
				problem = fmt.Errorf("%s: %w", opened.Description(), err)
			}
		}
		switch {
		case err == nil && k.Host:
			return passed, nil
		case err == nil:
			return nil, nil
		case i == len(kinds)-1 || ctx.Err() != nil:
			return nil, err
		}
		absent := errors.Is(problem, ErrAbsent)
		if !absent && (passed == nil || errors.Is(passed, ErrAbsent)) || absent && c.Memory && passed == nil {
			passed = problem
		}
	}
	return passed, nil
}
