package realizar

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/nearest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Options say how a model is opened. The zero Options are good for most.
type Options struct {
	// Device is where the model runs: "cpu"; "cuda" for an NVIDIA GPU, or "cuda:1"
	// for the one with the number 1, in a program that imports package
	// github.com/realizar/realizar/cuda; or "auto" (the same as "") for the best
	// there is: a GPU that works and that has room for the model, or for what must lie
	// there while the rest streams (see StreamWeights), or else the processor
	// ([Model.DeviceProblem] says why where there is a GPU, or where other options
	// speak of one).
	Device string
	// Threads share the work on the CPU. 0: one for each processor core that the
	// process may use, within the processor time that the system gives it. They
	// work best where GOMAXPROCS is larger than their number, so that the rest of
	// the process does not wait for them.
	Threads int
	// Kernels are the CPU instructions to compute with, such as "generic", which
	// every processor has, or "avx2". Empty: the best that the processor has. Who
	// names some gets the CPU where Device leaves that open.
	Kernels string
	// Context is the number of tokens that a prompt and its answer may have
	// together. 0: what the model was made for, or the largest power of two below
	// it of which memory has room for one.
	Context int
	// Parallel is the number of answers that may be under way at one time; more
	// wait for their turn. They share the cache: fewer are under way while it has no
	// room for all. 0: 64 on a GPU, 16 on the CPU.
	Parallel int
	// Memory is how many bytes of the host's memory may be taken, of what is free. On
	// the CPU that is by weights that are laid out anew, the cache and what a step
	// computes with together; 0: the cache takes half of what is free beside the weights
	// at most, or what one answer needs of the Context asked for. Beside a device it is
	// what may be pinned: weights that stream, and HostCache; 0: three quarters of what
	// is free.
	Memory int64
	// DeviceMemory is how much of a device's memory weights, the cache and what a step
	// computes with may take together, of what is free. The zero limit: the cache takes
	// half of what is free beside the weights at most, or what one answer needs of the
	// Context asked for. It is an error where Device or Kernels choose the CPU.
	DeviceMemory MemoryLimit
	// StreamWeights says whether weights come from the host's memory to a device when
	// they are needed, the layers one after the other in every step. The results are
	// the same. StreamAlways is an error where Device or Kernels choose the CPU.
	StreamWeights StreamWeights
	// Activations are the numbers computed with.
	Activations Activations
	// Cache are the numbers that keys and values are kept in.
	Cache Cache
	// HostCache is how many bytes of the host's memory may keep parts of the cache
	// that the device has no room for, so that they need not be computed again. 0:
	// none.
	HostCache int64
	// Kept keeps the HostCache while the model is closed; nil drops it.
	Kept *KeptCache
	// CheckArgmax has the processor choose every token again, from the logits of the
	// device: the first that is another one ends its request with an error that is
	// [ErrCheck] and names both. Steps wait for it, one after the other.
	CheckArgmax bool
	// CheckReference has plain loops on the processor repeat every operation of so many
	// steps, from the first on, on the device's own inputs: what is further from them than
	// rounding explains ends its request with an error that is [ErrCheck] and names the
	// layer, the operation and the weight. Such a step takes seconds.
	CheckReference int
	// PreTokenizer is the name, as in GGUF's tokenizer.ggml.pre, of how text is cut
	// before the tokenizer, for a GGUF file that names none or one that is not known.
	// Empty: what the file names.
	PreTokenizer string
	// Damaged, where not nil, is called with what [Model.Damage] says when the model's file
	// has changed, and with nil when it is again what it was. Closing the model waits for
	// it, so that it may not close the model.
	Damaged func(error)
	// Progress, where not nil, is called while the model loads.
	Progress func(Progress)
	// Watch, where not nil, is told what every step of the model took, before the answers
	// have what it gave. It is called for one step at a time, and the model waits for it, so
	// that it may not wait for the model. What measuring costs is little: on a GPU, a launch
	// more for each step.
	Watch func(StepTiming)
	// Profile has Watch told of the parts of every step too: [StepTiming.Spans]. On a GPU
	// kernels are then launched and timed one by one, so that steps take longer.
	Profile bool
}

// Activations are the numbers that a model computes with.
type Activations uint8

const (
	// ActivationsAuto is the fastest that keeps the model's quality. On the CPU it is 8
	// bits with a scale for every 32 values where weights are quantised in formats that
	// are computed in bytes, and float32 elsewhere. On an NVIDIA GPU it is float16 (with
	// weights rounded to float16 as well) where weights are quantised or float16,
	// bfloat16 where they are bfloat16, and float32 where they are float32.
	ActivationsAuto Activations = iota
	// ActivationsF32 is float32 throughout.
	ActivationsF32
)

var activationsNames = []string{"auto", "f32"}

// String is "auto" or "f32".
func (a Activations) String() string { return nameOf("activations", a, activationsNames) }

// ParseActivations reads "auto" or "f32".
func ParseActivations(s string) (Activations, error) {
	return parseName[Activations]("activations", s, activationsNames)
}

// nameOf is the name at a value's place in names.
func nameOf[T ~uint8](what string, v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(v))
}

// parseName reads a name; "" is the first one.
func parseName[T ~uint8](what, s string, names []string) (T, error) {
	if i := slices.Index(names, cmp.Or(s, names[0])); i >= 0 {
		return T(i), nil
	}
	return 0, fmt.Errorf("realizar: %w: %s %q, want %s", ErrOptions, what, s, nearest.OneOf(names))
}

// dtype is that of what weights are multiplied with on a backend that rounds so.
func (a Activations) dtype(rounds tensor.DType) tensor.DType {
	if a == ActivationsF32 {
		return tensor.F32
	}
	return rounds
}

// Progress says how far loading has come.
type Progress struct {
	Done, Total int64 // bytes of weights
}

func (o *Options) validate() error {
	switch {
	case o.Threads < 0:
		return fmt.Errorf("realizar: %w: %d threads", ErrOptions, o.Threads)
	case o.Kernels != "" && !slices.Contains(cpu.Tiers(), o.Kernels):
		return fmt.Errorf("realizar: %w: CPU kernels %q; this processor has %s", ErrOptions, o.Kernels, strings.Join(cpu.Tiers(), ", "))
	case o.Context < 0:
		return fmt.Errorf("realizar: %w: a context of %d tokens", ErrOptions, o.Context)
	case o.Parallel < 0:
		return fmt.Errorf("realizar: %w: %d answers at one time", ErrOptions, o.Parallel)
	case o.Memory < 0:
		return fmt.Errorf("realizar: %w: a memory of %d bytes; want 1 or more, or 0 for what is free", ErrOptions, o.Memory)
	case o.StreamWeights > StreamNever:
		return fmt.Errorf("realizar: %w: weights are to stream %v", ErrOptions, o.StreamWeights)
	case backends.All.Host(o.choice()) && o.DeviceMemory.any():
		return fmt.Errorf("realizar: %w: a limit of the device's memory, but the model is to run on the CPU; the limit there is Memory (--memory)", ErrOptions)
	case backends.All.Host(o.choice()) && o.StreamWeights == StreamAlways:
		return fmt.Errorf("realizar: %w: weights are to stream to a device, but the model is to run on the CPU", ErrOptions)
	case o.Activations > ActivationsF32:
		return fmt.Errorf("realizar: %w: activations %d", ErrOptions, o.Activations)
	case o.Cache > CacheQ8:
		return fmt.Errorf("realizar: %w: cache %d", ErrOptions, o.Cache)
	case o.Profile && o.Watch == nil:
		return fmt.Errorf("realizar: %w: a profile without a Watch that is told of it", ErrOptions)
	case o.HostCache < 0 || o.HostCache > math.MaxInt:
		return fmt.Errorf("realizar: %w: %d bytes of the host's memory for the cache; want 0 to %d", ErrOptions, o.HostCache, math.MaxInt)
	}
	if o.CheckReference < 0 {
		return fmt.Errorf("realizar: %w: %d steps to check; want 1 or more, or 0 for none", ErrOptions, o.CheckReference)
	}
	if err := backends.All.Check(o.choice()); err != nil {
		return fmt.Errorf("realizar: %w: %w", ErrOptions, err)
	}
	return o.DeviceMemory.validate()
}

// choice is which devices o allows.
func (o *Options) choice() backends.Choice {
	return backends.Choice{
		Name: o.Device, Threads: o.Threads, Kernels: o.Kernels, Memory: o.DeviceMemory.any() || o.StreamWeights == StreamAlways,
	}
}

// use opens the devices that valid options allow until do returns nil for one, and
// plans the memory there of a program that was made for a context: see
// [backends.List.Use].
func (o *Options) use(ctx context.Context, p *plan.Program, made int, do func(*memory.Planner) error) (passed, err error) {
	cache := o.Cache.dtype(o.Activations)
	if o.Context > made {
		return nil, fmt.Errorf("%w: a context of %d tokens, but the model was made for %d", ErrOptions, o.Context, made)
	}
	if n := p.MisfitHead(cache); n > 0 {
		return nil, fmt.Errorf("%w: a %v cache for heads of %d values, which are no multiple of %d; use f16", ErrOptions, o.Cache, n, cache.BlockLen())
	}
	opened := false
	passed, err = backends.All.Use(ctx, o.choice(), func(d *backends.Device) error {
		opened = true
		planner := &memory.Planner{Program: p, Made: made, Device: d, Backend: o.checked(d), Host: backends.HostMemory(), Options: memory.Options{
			Context: o.Context, Parallel: o.Parallel, Limit: o.Memory, HostCache: o.HostCache,
			StreamAll: o.StreamWeights == StreamAlways, StreamNone: o.StreamWeights == StreamNever,
			Cache: cache, Activations: o.Activations.dtype(d.Rounds()), Named: !o.choice().Automatic(),
		}}
		if !d.Kind.Host {
			planner.Options.Limit, planner.Options.Pinned = o.DeviceMemory.Of(d.Memory().Total), o.Memory
			if o.DeviceMemory.any() && planner.Options.Limit == 0 {
				return fmt.Errorf("%w: %v may be taken on %s, which does not say how much it has; say how many bytes may be taken",
					ErrMemory, o.DeviceMemory, d.Description())
			}
		}
		return do(planner)
	})
	if err != nil && !opened {
		err = fmt.Errorf("%w: %w", ErrDevice, err)
	}
	return passed, err
}

// checked is b with what o says of it looked at.
func (o *Options) checked(b plan.Backend) plan.Backend {
	return check.Wrap(b, check.Options{
		Argmax: o.CheckArgmax, Reference: o.CheckReference,
		NewReference: func(p *plan.Program, l plan.Limits) (check.Reference, error) { return cpu.NewReplay(p, l, o.Threads) },
	})
}
