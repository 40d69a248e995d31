package arch

import (
	"fmt"

	"github.com/realizar/realizar/internal/plan"
)

// shortConv is a gated convolution over the last s.Taps tokens: with b, c and v, three projections
// of the input, the result is the projection of c * conv(b * v) (Liquid AI, "LFM2 Technical Report",
// 2025).
func shortConv(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	parts := split(b, w, x, "shortconv.in_proj", s.ConvBias, s.Hidden, s.Hidden, s.Hidden)
	y := convolution(b, s, w, b.Mul(parts[0], parts[2]), "shortconv.conv")
	return linear(b, w, b.Mul(parts[1], y), "shortconv.out_proj", s.Hidden, s.ConvBias)
}

// convolution returns the convolution of each column of x over the last s.Taps tokens.
func convolution(b *plan.Builder, s *Spec, w layer, x plan.Value, short string) plan.Value {
	taps, d := w.weight(short), b.Cols(x)
	if len(taps.Shape) != 2 || taps.Shape[0] != d || taps.Shape[1] != s.Taps {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d %d] by the configuration", ErrTensor, taps.Name, taps.Shape, d, s.Taps))
	}
	state := b.State(plan.State{Name: fmt.Sprintf("conv.%d", w.index), Kind: plan.PerSequence, Size: (s.Taps - 1) * d})
	return b.Conv(x, taps, w.bias(short, s.ConvBias), state)
}
