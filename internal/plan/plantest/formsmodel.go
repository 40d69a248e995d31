package plantest

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// FormsModel returns a small decoder of 97 tokens with newer forms of attention and of residuals:
// values of another width than keys, chunks, queries that grow with the position, a layer that reads
// the keys and values of another, parts of a second table, several streams, and experts that are
// weighted before they compute. change is as for [Model].
func FormsModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(14)
	changed := func(w *tensor.Tensor) *tensor.Tensor {
		if change != nil {
			change(w)
		}
		return w
	}
	const heads, kvHeads, headDim, valueDim, part, count = 4, 2, 32, 64, 64, 4
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		second := Weight(rng, "second", tensor.Q8_0, 0.3, modelVocab-7, 4*part)
		streams, chunked := []plan.Value{x, x}, 0
		for i, d := range []tensor.DType{tensor.Q8_0, tensor.BF16, tensor.Q6_K, tensor.Q4_K} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			linear := func(x plan.Value, s string, rows int) plan.Value {
				format := d
				if b.Cols(x)%d.BlockLen() != 0 {
					format = tensor.Q8_0
				}
				return b.Linear(x, changed(Weight(rng, name(s), format, 0.06, rows, b.Cols(x))), nil)
			}
			a := plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, ValueDim: valueDim, Scale: 0.17}
			switch i {
			case 1, 3:
				a.Chunk = 100
			case 2:
				a.Window, a.ValueDim = 50, 0
			}
			h := b.RMSNorm(x, changed(vector(rng, name("norm"), 1, 0.1, modelHidden)), 1e-5)
			q := b.Temper(linear(h, "q", heads*headDim), plan.TemperAttr{By: 0.3, Every: 20, Shift: 1})
			var y plan.Value
			if i == 3 {
				y = b.AttentionTo(q, nil, chunked, a)
			} else {
				state := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: a.Values(), Window: a.Window, Chunk: a.Chunk})
				k, v := linear(h, "k", kvHeads*headDim), linear(h, "v", kvHeads*a.Values())
				y = b.Attention(q, k, v, vector(rng, name("sinks"), 0, 1, heads), state, a)
				if a.Chunk > 0 {
					chunked = state
				}
			}
			x = b.Add(x, linear(y, "o", modelHidden))

			h = b.RMSNorm(x, changed(vector(rng, name("norm2"), 1, 0.1, modelHidden)), 1e-5)
			switch i {
			case 0: // per-layer embeddings
				y = linear(b.Mul(b.Activate(linear(h, "gate", part), plan.GELUTanh), b.EmbedPart(second, part, part)), "down", modelHidden)
			case 1: // streams
				c := linear(h, "coefs", 4)
				y = b.Mix(c, 1, streams[0], streams[1], b.Rescale(linear(h, "up", modelHidden), x, 1e-5))
				streams = []plan.Value{x, y}
			case 2: // experts
				e := plan.ExpertsAttr{Route: plan.RouteAttr{Used: 2, Score: plan.SigmoidEach, Scale: 1, Before: true}, Scales: vector(rng, name("scales"), 1, 0.2, count)}
				for k := range count {
					for _, w := range []struct {
						to         *[]*tensor.Tensor
						s          string
						rows, cols int
					}{{&e.Gate, "gate", 64, modelHidden}, {&e.Up, "up", 64, modelHidden}, {&e.Down, "down", modelHidden, 64}} {
						*w.to = append(*w.to, changed(Weight(rng, name(fmt.Sprintf("%s.%d", w.s, k)), tensor.Q8_0, 0.06, w.rows, w.cols)))
					}
				}
				y = b.Experts(h, linear(h, "router", count), nil, e)
			case 3: // sparse gates
				g := b.Sparsify(linear(h, "gate", 128), 0.7)
				y = linear(b.GLU(g, linear(h, "up", 128), plan.GLUAttr{Act: plan.GELUTanh}), "down", modelHidden)
				y = b.MulBy(y, changed(vector(rng, name("scale"), 1, 0.2, modelHidden)))
			}
			x = b.Add(x, y)
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), changed(vector(rng, "last", 1, 0.1, modelHidden)), 1e-5)
		b.Output(h, b.Linear(h, changed(Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, modelHidden)), nil))
	})
}
