package realizar

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/describe"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/plan"
)

// Memory is what a model takes while it runs, in bytes.
type Memory struct {
	Context  int           `json:"context"`
	Parallel int           `json:"parallel"`
	Weights  int64         `json:"weights"`  // each counts once, wherever it is read from
	Resident int64         `json:"resident"` // what lies in the device's memory: on the processor, of Weights what is laid out anew, while the rest is mapped from the file and the system can let go of it
	States   []StateMemory `json:"states"`
	Scratch  int64         `json:"scratch"`              // of one step
	Total    int64         `json:"total"`                // of weights, states and scratch; on a device, of what is there
	Limit    int64         `json:"limit,omitempty"`      // of Total, by Options.DeviceMemory; 0: there is none
	Free     int64         `json:"free,omitempty"`       // what the device has left; 0 where it does not say
	Device   string        `json:"device"`               // that Free is of
	Cache    string        `json:"cache,omitempty"`      // number format of keys and values
	Host     int64         `json:"host_cache,omitempty"` // of the host, beside Total

	// Sequences of Context tokens each is what the states have room for at one time,
	// or this many Tokens of however many sequences.
	Sequences int `json:"sequences"`
	Tokens    int `json:"tokens"`

	Streaming *Streaming `json:"streaming,omitempty"` // nil where no weights stream

	DeviceName    string `json:"device_name,omitempty"`    // what the device is called; empty for the processor
	DeviceProblem string `json:"device_problem,omitempty"` // as [Model.DeviceProblem] has it
}

// StateMemory is what one kind of state takes for all sequences together.
type StateMemory struct {
	Kind   string `json:"kind"`             // "kv": keys and values
	Window int    `json:"window,omitempty"` // tokens kept of a sequence, 0: its context
	Layers int    `json:"layers"`
	Bytes  int64  `json:"bytes"`
}

// Memory plans what the model takes with o's Device, Context, Parallel, Memory,
// DeviceMemory, StreamWeights, Activations, Cache and HostCache; a Parallel of 0 is 1.
//
// On the processor a Context of 0 is the one that the model was made for, and where
// one answer does not fit, it is what that would take. On a device it is what the
// model would be opened with, and what does not fit is an error that wraps
// [ErrMemory], or where the choice is open, why it is the processor that is planned
// for. It is an error when the model cannot be run, or not so.
func (d *Description) Memory(o Options) (*Memory, error) {
	var m *Memory
	problem, err := d.plan(context.Background(), o, func(p *memory.Planner) (err error) {
		m, err = d.memory(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	if problem != nil {
		m.DeviceProblem = problem.Error()
	}
	return m, nil
}

// A LeastMemory is what a model takes at least, in bytes.
type LeastMemory struct {
	Context int    `json:"context"`              // that one answer of which has room
	Device  string `json:"device"`               // "cpu" or "cuda"
	Bytes   int64  `json:"bytes"`                // of the device: weights, the cache and a step's scratch
	Host    int64  `json:"host_cache,omitempty"` // of the host, beside Bytes
	Free    int64  `json:"free,omitempty"`       // what may be taken of the device now, by the options' limit of it; 0 where nobody knows
}

// Least is the least that the model takes with o's Device, Context, Parallel, Activations,
// Cache and HostCache and no weights that stream: its cache has room for one answer of the
// Context, which Parallel answers share. Bytes do not depend on what is free, so that they are known
// of models that take each other's place. Where the choice of a device is open, it is the first
// that works. With the same options and Bytes as Options.Memory on the processor, or as
// Options.DeviceMemory elsewhere, the model opens and takes no more; a Context of 0 is the one
// that the model was made for.
func (d *Description) Least(ctx context.Context, o Options) (*LeastMemory, error) {
	l := &LeastMemory{Host: o.HostCache}
	_, err := d.plan(ctx, o, func(p *memory.Planner) error {
		c, m, err := p.Least()
		l.Context, l.Device, l.Bytes = c.Context, p.Device.Name(), int64(m.Weights)+int64(m.States)+int64(m.Scratch)
		l.Free = p.Free()
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// plan plans the memory of the model with do on the devices that o allows, until do
// returns nil, for one answer where o leaves that open. passed is as
// [backends.List.Use] has it.
func (d *Description) plan(ctx context.Context, o Options, do func(*memory.Planner) error) (passed, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if d.program == nil {
		return nil, wrap(errors.New(d.Problem))
	}
	o.Parallel = max(1, o.Parallel)
	var closed error
	passed, err = o.use(ctx, d.program.Program, d.Dimensions.Context, func(p *memory.Planner) error {
		err := do(p)
		if err == nil {
			closed = p.Device.Close()
		}
		return err
	})
	if err = errors.Join(err, closed); err != nil {
		return nil, wrap(err)
	}
	return passed, nil
}

// memory is what the model takes on p's device.
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
	m.Weights = max(m.Weights, m.Resident) // rows that fill up a layout can make it the larger one
	for _, g := range u.Groups {
		m.States = append(m.States, StateMemory{Kind: g.Kind.String(), Window: g.Window, Layers: g.Layers, Bytes: g.Bytes})
	}
	m.Total = m.Weights + int64(u.States) + m.Scratch
	if !p.Device.Kind.Host {
		m.Limit = p.Options.Limit
		m.Total = m.Resident + int64(u.States) + m.Scratch
	}
	return m, nil
}

// An Expectation is how fast a model chooses the tokens of one answer at most, by what
// a device's memory and its link to the host were measured to do. Layers are copied
// while others are at work; experts are missed before they are used.
type Expectation struct {
	Bandwidth float64 `json:"bandwidth_bytes_s"`      // at which the device reads its memory
	Link      float64 `json:"link_bytes_s,omitempty"` // at which pinned memory of the host is copied to it; 0 where nothing streams

	// Bytes of a step of one token, without its keys and values. Of experts that are
	// copied when they are needed, all are taken to be used alike: where some are used
	// more than others, fewer bytes are fetched.
	Read    int64 `json:"read_bytes"`    // of weights
	Copied  int64 `json:"copied_bytes"`  // of layers that stream
	Fetched int64 `json:"fetched_bytes"` // of experts that the device does not keep

	Step float64 `json:"step_s"` // seconds of a step: the longer of reading and copying, and fetching
	Rate float64 `json:"tok_s"`
}

// Expect measures the device that o chooses and says how fast the model is expected
// to run there with o, which takes less than a second beside opening the device. It is
// nil for the processor.
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

// Kernels says what runs the model on the device that o chooses, a line for each
// part of the plan that is done as one. It is empty for the processor.
func (d *Description) Kernels(o Options) (kernels []string, err error) {
	err = d.onDevice(context.Background(), o, func(device *backends.Device, l plan.Limits) error {
		kernels = device.Kernels(d.program.Program, l)
		return nil
	})
	return kernels, err
}

// onDevice calls do with the device that o chooses if the model has room there with l,
// and does nothing if the model runs in the host's memory.
func (d *Description) onDevice(ctx context.Context, o Options, do func(device *backends.Device, l plan.Limits) error) error {
	var failed error
	_, err := d.plan(ctx, o, func(p *memory.Planner) error {
		if p.Device.Kind.Host {
			return nil
		}
		c, err := p.Config()
		if err == nil {
			failed = do(p.Device, c.Limits(p.Program))
		}
		return err
	})
	if err == nil && failed != nil {
		return wrap(failed)
	}
	return err
}
