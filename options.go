package realizar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/nearest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Options configure a model. The zero value of each field selects its default.
type Options struct {
	// Device selects the device that the model runs on:
	//
	//   - "cpu" is the CPU.
	//   - "cuda:1" is the NVIDIA GPU with number 1. "cuda:0,1" are two GPUs that run the model
	//     together, up to 8; each holds a part of it. The program must import package
	//     github.com/realizar/realizar/cuda.
	//   - "cuda" is the first GPU, or the first 2, 4 or 8 together: the fewest that hold all
	//     weights and the KV cache of an answer of Context tokens, or of 4096 if Context is 0. If
	//     these GPUs have no such room or cannot run the model together, it is the first GPU, and
	//     weights stream (see StreamWeights). It is always one GPU with StreamAlways and with
	//     CheckReference.
	//   - "auto" or "" is as "cuda" if a GPU works and has enough memory for the model, or for the
	//     part that must be on the GPU while the rest streams. If there is none, it is the CPU;
	//     [Model.DeviceProblem] then says why the GPU was not used.
	Device string
	// Replicas is the number of copies of the model, each on a GPU of its own, or on as many of the
	// GPUs that Device numbers: with 2 replicas, "cuda" is GPUs 0 and 1, and "cuda:0,1,2,3" is GPUs
	// 0 and 1 for one copy and 2 and 3 for the other. The GPUs must be alike. A request runs on the
	// copy with the least work that has most of its prompt cached. Weights do not stream. Context,
	// Parallel and DeviceMemory are those of each copy; Memory and HostCache are divided among the
	// copies. 0 is 1.
	Replicas int
	// Split says how GPUs that run the model together divide it. It is an error if Device or Kernels
	// select the CPU.
	Split Split
	// Threads is the number of threads that compute on the CPU. If 0, it is the number of
	// processor cores that the process may use, limited by its CPU quota. A GOMAXPROCS above
	// Threads lets other goroutines of the process run while the threads compute.
	Threads int
	// Kernels names the CPU instruction set to compute with, such as "avx2", or "generic", which
	// runs on every CPU. If empty, it is the best that the CPU supports. If Device is "auto" or
	// empty, a value selects the CPU.
	Kernels string
	// Context is the largest number of tokens that a prompt and one answer may have together. If
	// 0, it is the context that the model was trained for, or the largest power of two below that
	// for which memory has room.
	Context int
	// Parallel is the largest number of answers that run at a time; further answers wait in a
	// queue. Running answers share the KV cache, so fewer run while the cache has no room for
	// all. If 0, it is 64 on a GPU and 16 on the CPU.
	Parallel int
	// TargetITL is the longest time that a running request should wait for its next token while
	// prompts of other requests are prefilled: each step prefills as many tokens as fit into it, by
	// measured step times. It does not change the results. 0: 40 ms on a GPU, 100 ms on the CPU.
	TargetITL time.Duration
	// Speculative says who proposes tokens for an answer, of which one step then checks several.
	Speculative Speculative
	// Draft is the path of the model that proposes with SpeculativeDraft: one that is faster, with
	// the same tokens. With SpeculativeEAGLE it is the path of the head. If empty, it is that of the
	// head that the model brings: eagle3 in the model's folder, as demo/eagle3 of package demo.
	Draft string
	// SpeculativeTokens is the number of tokens that are proposed for an answer in one step. If 0,
	// it is what makes answers fastest, by the measured times of steps and by how many of the
	// answer's proposed tokens were right so far; where none would pay it is none.
	SpeculativeTokens int
	// Memory limits the host memory that the model takes, in bytes. It never takes more than is
	// free. On the CPU the limit is for repacked weights, the KV cache and scratch together. If it
	// is 0, the KV cache takes at most half of the memory that is free besides the weights, or
	// more if one answer of the given Context needs it. On a GPU the limit is for pinned memory:
	// streamed weights and HostCache. If it is 0, three quarters of the free memory may be pinned.
	Memory int64
	// DeviceMemory limits the GPU memory that weights, the KV cache and scratch take together, on
	// all GPUs that run the model. It never takes more than is free. If it is zero, the KV cache
	// takes at most half of the memory that is free besides the weights, or more if one answer of
	// the given Context needs it. It is an error if Device or Kernels select the CPU.
	DeviceMemory MemoryLimit
	// StreamWeights says whether weights that the GPU has no room for are kept in host memory and
	// copied to the GPU in each step, layer by layer. Streaming does not change the results.
	// StreamAlways is an error if Device or Kernels select the CPU.
	StreamWeights StreamWeights
	// Activations is the number format of activations.
	Activations Activations
	// Cache is the number format of keys and values in the KV cache.
	Cache Cache
	// HostCache is the number of bytes of host memory for pages of the KV cache that are evicted
	// from the device. A request that needs such a page copies it back instead of computing it
	// again. If 0, evicted pages are dropped.
	HostCache int64
	// Kept keeps the pages in HostCache while the model is closed. If nil, closing the model drops
	// them.
	Kept *KeptCache
	// TransferCache allows [Model.ExportCache] and [Model.ImportCache]. Open then reads all weights to
	// compute their digest. It needs HostCache.
	TransferCache bool
	// CacheEvents, if not nil, is called with every change of the KV cache, in order and one at a
	// time. The model waits for each call, so CacheEvents must not wait for the model.
	CacheEvents func(CacheEvent)
	// CheckArgmax samples every token again on the CPU, from the device's logits. If the tokens
	// differ, the request ends with an error that wraps [ErrCheck] and names both. Each step waits
	// for the check of the step before.
	CheckArgmax bool
	// CheckReference is the number of steps, from the first one on, whose operations are computed
	// again by plain loops on the CPU, from the device's own inputs. If a result differs by more
	// than rounding explains, the request ends with an error that wraps [ErrCheck] and names the
	// layer, the operation and the weight. Such a step takes seconds.
	CheckReference int
	// PreTokenizer names the rule that splits text before the tokenizer merges it, with the names
	// of tokenizer.ggml.pre in GGUF. It is for GGUF files that name no rule, or an unknown one. If
	// empty, the file's rule is used.
	PreTokenizer string
	// Damaged, if not nil, is called with the error that [Model.Damage] returns when the model's
	// file has changed, and with nil when the file is restored. [Model.Close] waits for the call
	// to return, so Damaged must not call Close.
	Damaged func(error)
	// Progress, if not nil, is called repeatedly while the weights load.
	Progress func(Progress)
	// Watch, if not nil, is called after every step with its timing, before the step's results
	// are delivered to requests. Calls do not overlap. The model waits for each call, so Watch must
	// not wait for the model. Measuring costs little: on a GPU, one more launch for each step.
	Watch func(StepTiming)
	// Profile fills in [StepTiming.Spans] for Watch. On a GPU kernels are then launched and timed
	// one by one, so steps take longer.
	Profile bool
}

// MaxReplicas is the most copies of a model, see [Options.Replicas].
const MaxReplicas = 64

// Activations is the number format in which a model computes.
type Activations uint8

const (
	// ActivationsAuto selects the fastest format that keeps the model's quality; it depends on
	// each weight. On the CPU it is 8 bits with a scale for every 32 values for weights in
	// quantized formats that have byte kernels, and float32 for others. On an NVIDIA GPU it is
	// float16 for quantized and float16 weights (quantized weights are rounded to float16 as
	// well), bfloat16 for bfloat16 weights, and float32 for float32 weights.
	ActivationsAuto Activations = iota
	// ActivationsF32 selects float32 for all weights.
	ActivationsF32
	// ActivationsF8 rounds the inputs and the weights of a layer's matrices to FP8 (E4M3, with a
	// scale for each row). Long prompts are faster, decoding is slower, and the outputs of a layer
	// differ by a few per cent. It needs an NVIDIA GPU of compute capability 9.0. Weights in F32, Q4_0, Q4_1, Q5_0,
	// Q5_1, MXFP4 and the IQ and TQ formats, experts, and the matrix of the logits are computed as
	// with [ActivationsAuto].
	ActivationsF8
)

var activationsNames = []string{"auto", "f32", "f8"}

// String returns "auto", "f32" or "f8".
func (a Activations) String() string { return nameOf("activations", a, activationsNames) }

// ParseActivations parses "auto", "f32" or "f8"; "" is "auto". The error wraps [ErrOptions].
func ParseActivations(s string) (Activations, error) {
	return parseName[Activations]("activations", s, activationsNames)
}

// nameOf returns names[v], or what(v) if v has no name.
func nameOf[T ~uint8](what string, v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(v))
}

// parseName returns the index of s in names; "" is the first name.
func parseName[T ~uint8](what, s string, names []string) (T, error) {
	if i := slices.Index(names, cmp.Or(s, names[0])); i >= 0 {
		return T(i), nil
	}
	return 0, fmt.Errorf("realizar: %w: %s %q, want %s", ErrOptions, what, s, nearest.OneOf(names))
}

// dtype returns the format that activations are rounded to on a backend that rounds to rounds.
func (a Activations) dtype(rounds tensor.DType) tensor.DType {
	switch a {
	case ActivationsF32:
		return tensor.F32
	case ActivationsF8:
		return tensor.F8_E4M3
	}
	return rounds
}

// Progress reports how much of a model is loaded.
type Progress struct {
	Done, Total int64 // bytes of weights
}

func (o *Options) validate() error {
	switch {
	case o.Threads < 0:
		return fmt.Errorf("realizar: %w: %d threads; want 1 or more, or 0 for one per core", ErrOptions, o.Threads)
	case o.Kernels != "" && !slices.Contains(cpu.Tiers(), o.Kernels):
		return fmt.Errorf("realizar: %w: CPU kernels %q; this processor has %s", ErrOptions, o.Kernels, strings.Join(cpu.Tiers(), ", "))
	case o.Replicas < 0 || o.Replicas > MaxReplicas:
		return fmt.Errorf("realizar: %w: %d replicas; want 1 to %d, or 0 for 1", ErrOptions, o.Replicas, MaxReplicas)
	case o.Replicas > 1 && o.StreamWeights == StreamAlways:
		return fmt.Errorf("realizar: %w: weights that stream with %d replicas, which are for models that fit on a GPU; leave out StreamWeights (--stream-weights) or Replicas (--replicas)", ErrOptions, o.Replicas)
	case o.Context < 0:
		return fmt.Errorf("realizar: %w: a context of %d tokens; want 1 or more, or 0 for what the model supports", ErrOptions, o.Context)
	case o.Parallel < 0:
		return fmt.Errorf("realizar: %w: %d running requests; want 1 or more, or 0 for the default", ErrOptions, o.Parallel)
	case o.TargetITL < 0:
		return fmt.Errorf("realizar: %w: a target of %v between tokens; want more than 0, or 0 for the device's own", ErrOptions, o.TargetITL)
	case o.Memory < 0:
		return fmt.Errorf("realizar: %w: a memory of %d bytes; want 1 or more, or 0 for what is free", ErrOptions, o.Memory)
	case o.StreamWeights > StreamNever:
		return fmt.Errorf("realizar: %w: StreamWeights is %v; want StreamAuto, StreamAlways or StreamNever", ErrOptions, o.StreamWeights)
	case backends.All.Host(o.choice()) && o.DeviceMemory.any():
		return fmt.Errorf("realizar: %w: a limit of device memory for a model on the CPU; use Memory (--memory) there", ErrOptions)
	case backends.All.Host(o.choice()) && o.StreamWeights == StreamAlways:
		return fmt.Errorf("realizar: %w: weights stream only to a GPU, but the model runs on the CPU; leave out StreamWeights (--stream-weights)", ErrOptions)
	case o.Split > SplitLayers:
		return fmt.Errorf("realizar: %w: Split is %v; want SplitAuto, SplitTensor or SplitLayers", ErrOptions, o.Split)
	case backends.All.Host(o.choice()) && o.Split != SplitAuto:
		return fmt.Errorf("realizar: %w: a split among GPUs of a model on the CPU; leave out Split (--split)", ErrOptions)
	case o.Activations > ActivationsF8:
		return fmt.Errorf("realizar: %w: activations %d", ErrOptions, o.Activations)
	case o.Activations == ActivationsF8 && o.CheckReference > 0:
		return fmt.Errorf("realizar: %w: a check against the reference with FP8 activations, whose errors are too large for it; leave out CheckReference (--check-reference)", ErrOptions)
	case o.Cache > CacheF8:
		return fmt.Errorf("realizar: %w: cache %d", ErrOptions, o.Cache)
	case o.Profile && o.Watch == nil:
		return fmt.Errorf("realizar: %w: Profile needs Watch, which gets the profile", ErrOptions)
	case o.TransferCache && o.HostCache == 0:
		return fmt.Errorf("realizar: %w: pages are transferred from and to HostCache (--kv-host); give it a size", ErrOptions)
	case o.HostCache < 0 || o.HostCache > math.MaxInt:
		return fmt.Errorf("realizar: %w: %d bytes of the host's memory for the cache; want 0 to %d", ErrOptions, o.HostCache, math.MaxInt)
	}
	if err := o.validateSpeculative(); err != nil {
		return err
	}
	if o.CheckReference < 0 {
		return fmt.Errorf("realizar: %w: %d steps to check; want 1 or more, or 0 for none", ErrOptions, o.CheckReference)
	}
	if err := backends.All.Check(o.choice()); err != nil {
		return fmt.Errorf("realizar: %w: %w", ErrOptions, err)
	}
	return o.DeviceMemory.validate()
}

// choice returns the devices that o allows.
func (o *Options) choice() backends.Choice {
	return backends.Choice{
		Name: o.Device, Threads: o.Threads, Kernels: o.Kernels, Split: mesh.Split(o.Split), Replicas: o.Replicas, Memory: o.DeviceMemory.any() || o.StreamWeights == StreamAlways,
		Single: o.StreamWeights == StreamAlways || o.CheckReference > 0,
	}
}

// A replica is a copy of a model that is planned for a device.
type replica struct {
	*memory.Planner
	draft *draftModel // or nil
}

// use opens the devices that o allows, one after the other, until do returns nil for one. It calls
// do with a plan of p's memory for each replica, beside that of a second model, if there is one.
// made is the context that the model was trained for. passed says why the preferred device was
// skipped: see [backends.List.Use].
func (o *Options) use(ctx context.Context, p *plan.Program, made int, second *draftModel, do func([]replica) error) (passed, err error) {
	cache := o.Cache.dtype(o.Activations)
	if o.Context > made {
		return nil, fmt.Errorf("%w: a context of %d tokens, but the model supports %d", ErrOptions, o.Context, made)
	}
	if n := p.MisfitHead(cache); n > 0 {
		return nil, fmt.Errorf("%w: a %v cache for heads of %d values, which are not a multiple of %d; use f16", ErrOptions, o.Cache, n, plan.HeadUnit(cache))
	}
	opened := false
	passed, err = backends.All.Use(ctx, o.choice(), func(a backends.Attempt) error {
		opened = true
		err := o.attempt(p, made, a, second, do)
		if errors.Is(err, ErrMemory) {
			err = backends.TooFew(err)
		}
		return err
	})
	if err != nil && !opened {
		err = fmt.Errorf("%w: %w", ErrDevice, err)
	}
	return passed, err
}

// attempt calls do with the plans for a's devices.
func (o *Options) attempt(p *plan.Program, made int, a backends.Attempt, second *draftModel, do func([]replica) error) error {
	all := make([]replica, len(a.Devices))
	for i := range all {
		var err error
		if all[i], err = o.replica(p, made, a, i, second); err != nil {
			return err
		}
	}
	return do(all)
}

// A divider is a backend of several devices, each of which runs a part of a program.
type divider interface {
	Partition(p *plan.Program, l plan.Limits) ([]mesh.Part, error)
	Shares() []float64
}

// replica returns the plan for device i of a.
func (o *Options) replica(p *plan.Program, made int, a backends.Attempt, i int, second *draftModel) (replica, error) {
	d, n := a.Devices[i], len(a.Devices)
	if o.Activations == ActivationsF8 && d.Kind.Host {
		return replica{}, fmt.Errorf("%w: FP8 activations need an NVIDIA GPU of compute capability 9.0, and the model runs on the CPU; leave out Activations (--activations f8)", ErrOptions)
	}
	second = second.replica()
	share := int64(n)
	host := backends.HostMemory()
	host.Free, host.Total = host.Free/share, host.Total/share
	planner := &memory.Planner{Program: p, Made: made, Device: d, Backend: o.checked(d), Host: host, Options: memory.Options{
		Context: o.Context, Parallel: o.Parallel, Limit: o.Memory, HostCache: o.HostCache / share, Gap: o.TargetITL, Drafts: o.drafts(d.Kind, second),
		StreamAll: o.StreamWeights == StreamAlways, StreamNone: o.StreamWeights == StreamNever || n > 1, Ample: a.Ample,
		Cache: o.Cache.dtype(o.Activations), Activations: o.Activations.dtype(d.Rounds()), Named: !o.choice().Automatic(),
	}}
	if !d.Kind.Host {
		planner.Options.Limit, planner.Options.Pinned = o.DeviceMemory.Of(d.Memory().Total), o.Memory/share
		if o.DeviceMemory.any() && planner.Options.Limit == 0 {
			return replica{}, fmt.Errorf("%w: a limit of %v on %s, which does not report its memory; give the limit in bytes",
				ErrMemory, o.DeviceMemory, d.Description())
		}
	}
	if several, ok := d.Backend.(divider); ok {
		if _, err := several.Partition(p, plan.Limits{Cache: planner.Options.Cache, Activations: planner.Options.Activations}); err != nil {
			return replica{}, err
		}
	}
	if second != nil {
		if err := planner.WithDraft(second.arch.Program, second.arch.Spec.Context); err != nil {
			return replica{}, err
		}
	}
	return replica{planner, second}, nil
}

// checked wraps b in the checks that o asks for.
func (o *Options) checked(b plan.Backend) plan.Backend {
	return check.Wrap(b, check.Options{
		Argmax: o.CheckArgmax, Reference: o.CheckReference,
		NewReference: func(p *plan.Program, l plan.Limits) (check.Reference, error) { return cpu.NewReplay(p, l, o.Threads) },
	})
}
