package realizar

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/describe"
	"github.com/realizar/realizar/internal/plan"
)

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
	err = d.onDevice(ctx, &o, func(device *backends.Device, l plan.Limits) error {
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
	err = d.onDevice(context.Background(), &o, func(device *backends.Device, l plan.Limits) error {
		kernels = device.Kernels(d.program.Program, l)
		return nil
	})
	return kernels, err
}

// onDevice calls do with the device that o chooses if the model has room there with l,
// and does nothing if the model runs in the host's memory.
func (d *Description) onDevice(ctx context.Context, o *Options, do func(device *backends.Device, l plan.Limits) error) error {
	if err := d.check(o); err != nil {
		return err
	}
	var failed error
	_, err := o.use(ctx, func(device *backends.Device) error {
		if device.Kind.Host {
			return device.Close()
		}
		p, err := d.planner(device, o)
		if err != nil {
			return errors.Join(err, device.Close())
		}
		c, err := p.Config()
		if err != nil {
			return errors.Join(err, device.Close())
		}
		failed = errors.Join(do(device, c.Limits(p.Program)), device.Close())
		return nil
	})
	if err = errors.Join(err, failed); err != nil {
		return wrap(err)
	}
	return nil
}
