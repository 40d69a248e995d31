package realizar

import (
	"context"

	"github.com/realizar/realizar/internal/backends"
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
	err = d.onDevice(&o, func(device backends.Device, l plan.Limits) (err error) {
		s := device.Streaming(d.program, l)
		e = &Expectation{Read: d.fixed, Copied: int64(s.Streamed)}
		if x := &s.Experts; x.Layers > 0 {
			e.Fetched = int64(float64(x.Layers*x.Used) * (1 - float64(x.Kept)/float64(x.Of)) * float64(x.Bytes))
		}
		if e.Bandwidth, err = device.Bandwidth(ctx); err != nil || !s.Any() {
			return err
		}
		e.Link, err = device.Link(ctx)
		return err
	})
	if err != nil || e == nil {
		return nil, err
	}
	e.reckon()
	return e, nil
}

// reckon sets how long a step takes.
func (e *Expectation) reckon() {
	e.Step = float64(e.Read) / e.Bandwidth
	if e.Link > 0 {
		e.Step = max(e.Step, float64(e.Copied)/e.Link) + float64(e.Fetched)/e.Link
	}
	e.Rate = 1 / e.Step
}
