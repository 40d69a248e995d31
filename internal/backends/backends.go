// Package backends is the list of the kinds of device that a binary can run models on. The
// processor is always the last one. A package for another kind registers it when it is imported, so
// that a binary without the package does not contain it.
//
// The package knows how devices are named and chosen, and what the planner needs to know of a kind.
package backends

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/nearest"
	"github.com/realizar/realizar/internal/plan"
)

// A Backend is a [plan.Backend] that holds a device until it is closed.
type Backend interface {
	plan.Backend
	// Description returns the name of the device, such as "NVIDIA H200". It is empty if the name of
	// its kind is enough.
	Description() string
	// Kernels returns a line for each stage of p with the names of its kernels, or nil if stages
	// are the plan's operations.
	Kernels(p *plan.Program, l plan.Limits) []string
	// Bandwidth measures the bandwidth of the device's memory in bytes per second.
	Bandwidth(ctx context.Context) (float64, error)
	// Link measures the bandwidth from pinned host memory to the device in bytes per second; 0 if
	// nothing is copied.
	Link(ctx context.Context) (float64, error)
	// Streaming says where the weights of p are with these limits.
	Streaming(p *plan.Program, l plan.Limits) plan.Streaming
	// Close releases the device. Everything compiled on it must be closed first.
	Close() error
}

// A Kind is a kind of device.
type Kind struct {
	Name string // name for users: "cuda"
	// Host says that the only device of the kind computes in host memory: no limit of device memory
	// applies, weights are mapped or laid out there and never stream, and nothing has to be copied.
	Host bool
	// Parallel is the default number of concurrent answers, at least 1.
	Parallel int
	// Chunk and Gap are the defaults of [engine.Config]; 0 for the engine's own.
	Chunk int
	Gap   time.Duration
	// Several is the most devices of the kind that can run a model together; 0 is 1.
	Several int
	// Count returns how many devices of the kind there are, without opening one; nil: 1.
	Count func() int
	// Open opens a device. The error is [ErrAbsent] if the system shows no sign of such devices.
	Open func(o Options) (Backend, error)
}

// Options say how to open a device.
type Options struct {
	Index  int        // number of the device of its kind, from 0
	Others []int      // numbers of further devices that run the model together with it; see [Kind.Several]
	Split  mesh.Split // how these divide the model

	// For the processor: Threads is the number of threads, 0 for one per core that the process may
	// use. Kernels names the instructions to use, empty for the best available.
	Threads int
	Kernels string
}

// A Device is an opened device, or several that run a model together.
type Device struct {
	Backend
	Kind    Kind
	Numbers []int // of the devices of its kind
}

// Selector returns the name that selects d in [Choice]: "cpu", "cuda:0" or "cuda:0,1".
func (d *Device) Selector() string {
	if d.Kind.Host {
		return d.Kind.Name
	}
	var words []string
	for _, n := range d.Numbers {
		words = append(words, strconv.Itoa(n))
	}
	return d.Kind.Name + ":" + strings.Join(words, ",")
}

// ErrAbsent reports that the system shows no sign of devices of a kind: it has no driver for them.
// See [Absent].
var ErrAbsent = errors.New("there is no such device")

// ErrTooFew reports that a model has no room on the devices of an [Attempt], and may have on others.
// See [TooFew].
var ErrTooFew = errors.New("there is no room on so few devices")

// Absent returns an error that wraps err and is also [ErrAbsent].
func Absent(err error) error { return also{err, ErrAbsent} }

// TooFew returns an error that wraps err and is also [ErrTooFew].
func TooFew(err error) error { return also{err, ErrTooFew} }

// An also is an error that is also another one, with its own text.
type also struct {
	error
	is error
}

func (a also) Unwrap() error        { return a.error }
func (a also) Is(target error) bool { return target == a.is }

// A List is the kinds of device, best first. The last one is the host's.
type List []Kind

// All is the kinds of this binary. Packages register kinds when they are initialized; the list does
// not change afterwards.
var All = List{Processor}

// Register adds a kind of device to [All].
func Register(k Kind) { All = append(All[:len(All)-1:len(All)-1], k, Processor) }

// auto means the best available device, as does an empty name.
const auto = "auto"

// Automatic reports whether a name leaves the choice open.
func Automatic(name string) bool { return name == "" || name == auto }

// Kind returns the kind with that name, or the zero Kind.
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
	// Name is the name of a kind. It may number one device, as in "cuda:1", or several that run the
	// model together, as in "cuda:0,1". A name without numbers selects the fewest devices that have
	// room for the model. An empty name or "auto" selects the best kind with a device that can be
	// opened, or the host's if Kernels is set.
	Name    string
	Threads int        // as in [Options]
	Kernels string     // as in [Options]
	Split   mesh.Split // as in [Options]
	// Replicas is how many copies of the model are wanted; 0 is 1. Each is on a device of its own. If
	// Name numbers devices, each gets as many of them, in their order; otherwise the first ones.
	Replicas int
	// Single says that the model cannot run on several devices together, or that its weights are to
	// stream: without numbers in Name, it is on one device.
	Single bool
	// Memory says that a device with its own memory is wanted, so that its absence needs a reason.
	Memory bool
}

// Automatic reports whether c allows any kind.
func (c Choice) Automatic() bool { return Automatic(c.Name) && c.Kernels == "" }

// Check returns an error if c's name is invalid.
func (l List) Check(c Choice) error {
	_, _, err := l.find(c)
	return err
}

func (c Choice) replicas() int { return max(1, c.Replicas) }

// Host reports whether c allows only the host's device.
func (l List) Host(c Choice) bool {
	kinds, _, err := l.find(c)
	return err == nil && !c.Automatic() && kinds[0].Host
}

// find returns the kinds that c allows, and the numbers of the devices of each replica; nil if c
// leaves them open.
func (l List) find(c Choice) (List, [][]int, error) {
	if c.Automatic() {
		if l = l[:len(l):len(l)]; c.replicas() > 1 {
			if l = l[:len(l)-1]; len(l) == 0 {
				return nil, nil, replicasOfHost(c)
			}
		}
		return l, nil, nil
	}
	if Automatic(c.Name) {
		c.Name = l[len(l)-1].Name
	}
	name, number, numbered := strings.Cut(c.Name, ":")
	i := slices.IndexFunc(l, func(k Kind) bool { return k.Name == name && (!k.Host || !numbered) })
	switch {
	case i < 0:
		names := []string{auto, l[len(l)-1].Name}
		for _, k := range l[:len(l)-1] {
			names = append(names, k.Name)
		}
		return nil, nil, fmt.Errorf("device %q is not in this build; use %s", c.Name, nearest.OneOf(names))
	case l[i].Host && c.replicas() > 1:
		return nil, nil, replicasOfHost(c)
	case !numbered:
		return l[i : i+1], nil, nil
	}
	var numbers []int
	for word := range strings.SplitSeq(number, ",") {
		n, err := strconv.ParseUint(word, 10, 16)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("device %q: want %s, or %s:1 for device number 1", c.Name, name, name)
		case slices.Contains(numbers, int(n)):
			return nil, nil, fmt.Errorf("device %q: %d appears twice; name each device once", c.Name, n)
		}
		numbers = append(numbers, int(n))
	}
	each := len(numbers) / c.replicas()
	switch {
	case len(numbers)%c.replicas() != 0:
		return nil, nil, fmt.Errorf("device %q: %d devices for %d replicas; name as many for each", c.Name, len(numbers), c.replicas())
	case each > 1 && l[i].Several < 2:
		return nil, nil, fmt.Errorf("device %q: a model runs on one %s device; use one of them, such as %s:%d", c.Name, name, name, numbers[0])
	}
	return l[i : i+1], slices.Collect(slices.Chunk(numbers, each)), nil
}

// replicasOfHost returns the error for replicas on the host's device, of which there is one.
func replicasOfHost(c Choice) error {
	return fmt.Errorf("%d replicas need as many devices, and the processor is one: use a kind of device with several, or 1 replica with more answers at a time", c.Replicas)
}

// An Attempt is devices to run a model on: one for each replica.
type Attempt struct {
	Devices []*Device
	// Ample says that the model needs ample room on the devices: its weights do not stream, and its
	// context is not short. Otherwise [List.Use] tries others, if the error is [ErrTooFew].
	Ample bool
}

// An attempt says which devices an [Attempt] opens.
type attempt struct {
	replicas [][]int // numbers of the devices of each replica
	ample    bool
}

// together reports whether several devices run a model.
func (a attempt) together() bool { return len(a.replicas[0]) > 1 }

// attempts returns the attempts for c with devices of k, in their order. numbers are those of the
// devices of each replica; if they are nil, one replica is tried on the first device, then on the
// first two, and so on, always twice as many. If none has ample room, it is on the first device.
func (k Kind) attempts(c Choice, numbers [][]int) (all []attempt) {
	if numbers != nil {
		return []attempt{{replicas: numbers}}
	}
	first := attempt{}
	for i := range c.replicas() {
		first.replicas = append(first.replicas, []int{i})
	}
	if c.replicas() == 1 && !c.Single && k.Count != nil {
		var group []int
		for i := range min(k.Count(), k.Several) {
			group = append(group, i)
			if n := len(group); n&(n-1) == 0 {
				all = append(all, attempt{[][]int{slices.Clone(group)}, true})
			}
		}
	}
	if len(all) == 1 { // there is only the first device
		all = nil
	}
	return append(all, first)
}

// Open opens the best device that c allows.
func (l List) Open(c Choice) (d *Device, passed, err error) {
	passed, err = l.Use(context.Background(), c, func(a Attempt) error {
		d = a.Devices[0]
		return nil
	})
	return d, passed, err
}

// Use opens the devices that c allows, best first, until use returns nil for an attempt. The caller
// closes the devices of that attempt; Use closes the others. The error is that of the last device,
// or of the device that was tried when ctx ended. passed says why a better device was skipped, if c
// is automatic and the host's device is used: the error of a device of which the system shows signs,
// or if c wants a device with its own memory, why there is none.
//
// Several devices that run a model together are tried only if fewer have no room; that they cannot
// run it is logged.
func (l List) Use(ctx context.Context, c Choice, use func(Attempt) error) (passed, err error) {
	kinds, numbers, err := l.find(c)
	if err != nil {
		return nil, err
	}
	if c.Memory && len(kinds) == 1 && c.Automatic() {
		passed = fmt.Errorf("%w: this build supports only the processor", ErrAbsent)
	}
	for i, k := range kinds {
		problem, err := k.use(ctx, c, numbers, use)
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

// use opens the devices of k for c until use returns nil for an attempt. problem is err with the
// name of the device.
func (k Kind) use(ctx context.Context, c Choice, numbers [][]int, use func(Attempt) error) (problem, err error) {
	for all := k.attempts(c, numbers); len(all) > 0; {
		a := all[0]
		all = all[1:]
		if problem, err = k.try(c, a, use); err == nil || ctx.Err() != nil {
			return problem, err
		}
		switch {
		case errors.Is(err, ErrTooFew):
		case !a.together(): // more devices do not help
			return problem, err
		case len(all) > 0:
			slog.Warn("several devices cannot run the model together; the first one runs it alone", slog.Any("error", problem))
			all = all[len(all)-1:]
		}
	}
	return problem, err
}

// try calls use with the opened devices of a, and closes them if it returns an error.
func (k Kind) try(c Choice, a attempt, use func(Attempt) error) (problem, err error) {
	opened, err := k.openAll(c, a.replicas)
	if err != nil {
		return err, err
	}
	if err = use(Attempt{opened, a.ample}); err == nil {
		return nil, nil
	}
	problem = fmt.Errorf("%s: %w", opened[0].Description(), err)
	return problem, errors.Join(err, closeAll(opened))
}

// openAll opens a device for each replica. They must be alike, so that answers have the same bits on
// each.
func (k Kind) openAll(c Choice, replicas [][]int) (all []*Device, err error) {
	for i, numbers := range replicas {
		d, err := k.Open(Options{Index: numbers[0], Others: numbers[1:], Split: c.Split, Threads: c.Threads, Kernels: c.Kernels})
		if err != nil {
			if i > 0 {
				err = fmt.Errorf("replica %d of %d: %w", i, len(replicas), err)
			}
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, &Device{d, k, numbers})
		if first, own := all[0].Description(), d.Description(); own != first {
			return nil, errors.Join(fmt.Errorf("replica 0 is on %s and replica %d on %s; name devices that are alike", first, i, own), closeAll(all))
		}
	}
	return all, nil
}

func closeAll(all []*Device) (err error) {
	for _, d := range all {
		err = errors.Join(err, d.Close())
	}
	return err
}
