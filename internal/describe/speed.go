package describe

import (
	"context"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/plan"
)

// A Speed is an upper bound of the speed at which a model decodes one answer. Sizes are bytes of a
// step of one token, without its keys and values; rates are bytes per second.
type Speed struct {
	Bandwidth, Link       float64 // of the device's memory; of the link to it, if weights stream
	Read, Copied, Fetched int64   // weights read; layers copied; experts copied because the device does not keep them
	Step, Rate            float64 // seconds per step; tokens per second
}

// Measure measures d and returns the speed of p on it within l. Layers are copied while others
// compute; experts are copied before they are used. All experts count as equally likely.
func Measure(ctx context.Context, d *backends.Device, p *Program, l plan.Limits) (s Speed, err error) {
	weights := d.Streaming(p.Program, l)
	s.Read, s.Copied = p.Read, int64(weights.Streamed)
	if x := &weights.Experts; x.Layers > 0 {
		s.Fetched = int64(float64(x.Layers*x.Used) * (1 - float64(x.Kept)/float64(x.Of)) * float64(x.Bytes))
	}
	if s.Bandwidth, err = d.Bandwidth(ctx); err != nil {
		return s, err
	}
	if weights.Any() {
		if s.Link, err = d.Link(ctx); err != nil {
			return s, err
		}
	}
	s.Step = float64(s.Read) / s.Bandwidth
	if s.Link > 0 {
		s.Step = max(s.Step, float64(s.Copied)/s.Link) + float64(s.Fetched)/s.Link
	}
	s.Rate = 1 / s.Step
	return s, nil
}
