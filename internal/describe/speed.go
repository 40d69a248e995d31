package describe

import (
	"context"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/plan"
)

// A Speed is how fast a model chooses the tokens of one answer at most. Sizes are bytes
// of a step of one token, without its keys and values; rates are bytes a second.
type Speed struct {
	Bandwidth, Link       float64 // of the device's memory, and to it if something streams
	Read, Copied, Fetched int64   // of weights, of layers that stream, of experts that the device does not keep
	Step, Rate            float64 // seconds of a step, tokens a second
}

// Measure measures d and says how fast p runs there within l. Layers are copied while
// others are computed; experts are fetched before they are used. All experts count as
// used alike.
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
