package realizar

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/describe"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/plan"
)

// Memory is the memory that a model takes while it runs, in bytes.
type Memory struct {
	Context  int `json:"context"`
	Parallel int `json:"parallel"`
	// Weights is the size of all weights, wherever steps read them from.
	Weights int64 `json:"weights"`
	// Resident is the size of the weights in the device's memory. On the CPU these are the weights
	// that are repacked; the others are mapped from the file, and the system can reclaim their
	// pages.
	Resident int64         `json:"resident"`
	States   []StateMemory `json:"states"`
	Scratch  int64         `json:"scratch"`              // memory of one step
	Total    int64         `json:"total"`                // weights, states and scratch; on a GPU Resident instead of Weights
	Limit    int64         `json:"limit,omitempty"`      // limit of Total by Options.DeviceMemory; 0 if there is none
	Free     int64         `json:"free,omitempty"`       // free memory of the device; 0 if unknown
	Device   string        `json:"device"`               // "cpu" or "cuda"
	Cache    string        `json:"cache,omitempty"`      // number format of keys and values
	Draft    int64         `json:"draft,omitempty"`      // what the draft model takes of the device, which counts in Total
	Host     int64         `json:"host_cache,omitempty"` // Options.HostCache, which does not count in Total

	// Sequences is the number of sequences of Context tokens for which the states have room.
	// Tokens is the number of tokens, over any number of sequences.
	Sequences int `json:"sequences"`
	Tokens    int `json:"tokens"`

	Streaming *Streaming `json:"streaming,omitempty"` // nil if no weights stream

	DeviceName    string `json:"device_name,omitempty"`    // name of the GPU; empty on the CPU
	DeviceProblem string `json:"device_problem,omitempty"` // see [Model.DeviceProblem]
}

// StateMemory is the memory of one kind of state for all sequences together.
type StateMemory struct {
	Kind   string `json:"kind"`             // "kv": keys and values
	Window int    `json:"window,omitempty"` // tokens kept per sequence; 0: its context
	Chunk  int    `json:"chunk,omitempty"`  // tokens are kept since the last multiple of Chunk; 0: for longer
	Layers int    `json:"layers"`
	Bytes  int64  `json:"bytes"`

	// Slots is how many states of sequences there is room for; 0 for states of tokens. Checkpoints
	// of them are for the beginnings of later prompts, beside those of running answers.
	Slots       int `json:"slots,omitempty"`
	Checkpoints int `json:"checkpoints,omitempty"`
}

// Memory plans the memory that the model takes with o. It reads Device, Kernels, Context, Parallel,
// Memory, DeviceMemory, StreamWeights, Activations, Cache, HostCache, Speculative, Draft and Replicas; a
// Parallel of 0 is 1 here. With replicas the result is what the first of them takes, see
// [Description.Replicas].
//
// On the CPU a Context of 0 is the context that the model was trained for. If one answer does not
// fit, the result is what it would take. On a GPU the result is what [Open] would take. If the
// model does not fit there, Memory returns an error that wraps [ErrMemory], or if o also allows the
// CPU, it plans for the CPU and sets DeviceProblem. It returns an error if the model cannot be run
// with o.
func (d *Description) Memory(o Options) (*Memory, error) {
	all, err := d.Replicas(o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Replicas plans the memory that each of o.Replicas copies of the model takes, as [Description.Memory]
// does for one. Each has its own part of o.Memory and o.HostCache, and all have the longest context
// for which each has room.
func (d *Description) Replicas(o Options) ([]*Memory, error) {
	var copies []*Memory
	problem, err := d.planAll(context.Background(), o, func(all []replica) error {
		if len(all) > 1 {
			if _, err := sizesOf(all); err != nil {
				return err
			}
		}
		copies = nil
		for i := range all {
			m, err := d.memory(all[i].Planner)
			if err != nil {
				return replicaError(all, i, err)
			}
			copies = append(copies, m)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if problem != nil {
		for _, m := range copies {
			m.DeviceProblem = problem.Error()
		}
	}
	return copies, nil
}

// LeastMemory is the least memory that a model needs, in bytes.
type LeastMemory struct {
	Context int    `json:"context"`              // tokens of the answer for which the KV cache has room
	Device  string `json:"device"`               // "cpu" or "cuda"
	Bytes   int64  `json:"bytes"`                // device memory of all devices: weights, KV cache and scratch
	Host    int64  `json:"host_cache,omitempty"` // host memory, in addition to Bytes
	Free    int64  `json:"free,omitempty"`       // device memory that o allows to take now; 0 if unknown

	Numbers []int     `json:"numbers,omitempty"` // of the GPUs that run the model together
	Shares  []float64 `json:"shares,omitempty"`  // of Bytes and Free that each of several GPUs has
}

// Least returns the least memory that the model needs with o's Device, Context, Parallel,
// Activations, Cache and HostCache if no weights stream. The KV cache then has room for one answer
// of Context tokens, which Parallel answers share. A Context of 0 is the context that the model was
// trained for. If o leaves the device open, it is the first one that works.
//
// Bytes does not depend on the memory that is free, so it can be computed for models that replace
// each other. If Options.Memory (on the CPU) or Options.DeviceMemory (on a GPU) is set to Bytes,
// and the other options are the same, Open succeeds and takes no more.
func (d *Description) Least(ctx context.Context, o Options) (*LeastMemory, error) {
	l := &LeastMemory{Host: o.HostCache}
	_, err := d.plan(ctx, o, func(p *memory.Planner) error {
		c, m, err := p.Least()
		l.Context, l.Device, l.Bytes = c.Context, p.Device.Name(), int64(m.Weights)+int64(m.States)+int64(m.Scratch)
		if !p.Device.Kind.Host {
			l.Numbers = p.Device.Numbers
		}
		if several, ok := p.Device.Backend.(divider); ok {
			l.Shares = several.Shares()
		}
		if p.Draft != nil {
			l.Bytes += p.Draft.Least
		}
		l.Free = p.Free()
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// plan is planAll for the first replica.
func (d *Description) plan(ctx context.Context, o Options, do func(*memory.Planner) error) (passed, err error) {
	return d.planAll(ctx, o, func(all []replica) error { return do(all[0].Planner) })
}

// planAll calls do with planners of the memory of the model's replicas, on each device that o allows,
// until do returns nil. A Parallel of 0 is 1. passed says why the preferred device was skipped: see
// [backends.List.Use].
func (d *Description) planAll(ctx context.Context, o Options, do func([]replica) error) (passed, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if d.program == nil {
		return nil, wrap(errors.New(d.Problem))
	}
	o.Parallel = max(1, o.Parallel)
	program, err := d.programWith(&o)
	if err != nil {
		return nil, wrap(err)
	}
	second, err := d.openDraft(&o)
	if err != nil {
		return nil, wrap(err)
	}
	var closed error
	passed, err = o.use(ctx, program, d.Dimensions.Context, second, func(all []replica) error {
		err := do(all)
		if err == nil {
			for i := range all {
				closed = errors.Join(closed, all[i].Device.Close())
			}
		}
		return err
	})
	if err = errors.Join(err, closed, second.close()); err != nil {
		return nil, wrap(err)
	}
	return passed, nil
}

// memory returns the memory that the model takes on p's device.
func (d *Description) memory(p *memory.Planner) (*Memory, error) {
	u, err := p.Use()
	if err != nil {
		return nil, err
	}
	streaming := p.Device.Streaming(p.Program, u.Limits)
	m := &Memory{
		Context: u.Config.Context, Parallel: u.Config.Parallel, Resident: int64(u.Weights), Scratch: int64(u.Scratch),
		Cache: u.Config.Cache.String(), Host: p.Options.HostCache, Free: p.Device.Memory().Free, Device: p.Device.Name(), DeviceName: p.Device.Description(),
		Sequences: u.Sequences, Tokens: u.Tokens, Streaming: newStreaming(&streaming),
	}
	for _, t := range d.Tensors {
		m.Weights += t.Bytes
	}
	m.Weights = max(m.Weights, m.Resident) // padding can make repacked weights larger
	for _, g := range u.Groups {
		m.States = append(m.States, StateMemory{
			Kind: g.Kind.String(), Window: g.Window, Chunk: g.Chunk, Layers: g.Layers, Bytes: g.Bytes, Slots: g.Slots, Checkpoints: g.Checkpoints,
		})
	}
	if p.Draft != nil {
		m.Draft = p.Draft.Total()
	}
	m.Total = m.Weights + int64(u.States) + m.Scratch + m.Draft
	if !p.Device.Kind.Host {
		m.Limit = p.Options.Limit
		m.Total = m.Resident + int64(u.States) + m.Scratch + m.Draft
	}
	return m, nil
}

// An Expectation is an upper bound of the rate at which a GPU decodes one answer, computed from
// measurements of its memory and its link to the host.
type Expectation struct {
	Bandwidth float64 `json:"bandwidth_bytes_s"`      // of the device's memory, in bytes per second
	Link      float64 `json:"link_bytes_s,omitempty"` // of copies from pinned host memory, in bytes per second; 0 if no weights stream

	// Read, Copied and Fetched are the bytes that a step of one token moves, without keys and
	// values. Fetched assumes that all experts are used equally often; if some are used more than
	// others, fewer bytes are fetched.
	Read    int64 `json:"read_bytes"`    // weights read by kernels
	Copied  int64 `json:"copied_bytes"`  // layers that stream
	Fetched int64 `json:"fetched_bytes"` // experts that the device does not keep

	// Step is the time of a step in seconds. Layers are copied while others compute, so it is the
	// longer of reading and copying, plus fetching.
	Step float64 `json:"step_s"`
	Rate float64 `json:"tok_s"` // tokens per second
}

// Expect measures the device that o selects and returns how fast the model can run on it with o.
// This takes less than a second, in addition to opening the device. It returns nil for the CPU.
func (d *Description) Expect(ctx context.Context, o Options) (e *Expectation, err error) {
	err = d.onDevice(ctx, o, func(device *backends.Device, l plan.Limits) error {
		s, err := describe.Measure(ctx, device, d.program, l)
		e = (*Expectation)(&s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Kernels returns the kernels that run the model on the GPU that o selects, one line for each stage
// of the plan. It is empty for the CPU.
func (d *Description) Kernels(o Options) (kernels []string, err error) {
	err = d.onDevice(context.Background(), o, func(device *backends.Device, l plan.Limits) error {
		kernels = device.Kernels(d.program.Program, l)
		return nil
	})
	return kernels, err
}

// onDevice calls do with the device that o selects and the limits of the model there. It does
// nothing if the device computes in host memory.
func (d *Description) onDevice(ctx context.Context, o Options, do func(device *backends.Device, l plan.Limits) error) error {
	var failed error
	_, err := d.planAll(ctx, o, func(all []replica) error {
		first := all[0]
		if first.Device.Kind.Host {
			return nil
		}
		sizes, err := sizesOf(all)
		if err == nil {
			failed = do(first.Device, sizes[0].Limits(first.Program))
		}
		return err
	})
	if err == nil && failed != nil {
		return wrap(failed)
	}
	return err
}
