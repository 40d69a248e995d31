package realizar

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/memory"
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
	if err := d.check(&o); err != nil {
		return nil, err
	}
	var m *Memory
	problem, err := o.use(context.Background(), func(device *backends.Device) (err error) {
		m, err = d.memory(device, &o)
		return errors.Join(err, device.Close())
	})
	if err != nil {
		return nil, wrap(err)
	}
	if problem != nil {
		m.DeviceProblem = problem.Error()
	}
	return m, nil
}

// check says why the model cannot be run, or not so.
func (d *Description) check(o *Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if d.program == nil {
		return fmt.Errorf("realizar: %w", errors.New(d.Problem))
	}
	if err := o.suit(d.program.Program, d.Dimensions.Context); err != nil {
		return wrap(err)
	}
	return nil
}

// planner plans the memory of the model on a device, for one answer where o leaves
// that open.
func (d *Description) planner(device *backends.Device, o *Options) (*memory.Planner, error) {
	one := *o
	one.Parallel = max(1, o.Parallel)
	return one.planner(device, d.program.Program, d.Dimensions.Context)
}

// memory is what the model takes on a device.
func (d *Description) memory(device *backends.Device, o *Options) (*Memory, error) {
	p, err := d.planner(device, o)
	if err != nil {
		return nil, err
	}
	u, err := p.Use()
	if err != nil {
		return nil, err
	}
	streaming := device.Streaming(p.Program, u.Limits)
	m := &Memory{
		Context: u.Config.Context, Parallel: u.Config.Parallel, Resident: int64(u.Weights), Scratch: int64(u.Scratch),
		Cache: u.Config.Cache.String(), Host: o.HostCache, Free: device.Memory().Free, Device: device.Name(), DeviceName: device.Description(),
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
	if !device.Kind.Host {
		m.Limit = p.Options.Limit
		m.Total = m.Resident + int64(u.States) + m.Scratch
	}
	return m, nil
}
