package plantest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// uneven returns a random matrix whose second half of columns is larger than the first, so that what
// a format keeps for a whole row differs from what a half would have.
func uneven(rng *rand.Rand, name string, d tensor.DType, rows, cols int) *tensor.Tensor {
	small, large := Weight(rng, name, d, 0.01, rows, cols/2), Weight(rng, name, d, 0.08, rows, cols/2)
	w, n := &tensor.Tensor{Name: name, DType: d, Shape: []int{rows, cols}}, small.RowBytes()
	for r := range rows {
		w.Data = append(append(w.Data, small.Data[r*n:(r+1)*n]...), large.Data[r*n:(r+1)*n]...)
	}
	return w
}

// SumsModel returns a decoder whose output projections are so wide that two or four devices can each
// compute the sums of some of their columns: in several formats, with and without a bias, a scale, a
// residual and a norm behind them.
func SumsModel(t *testing.T, _ func(*tensor.Tensor)) *plan.Program { return SumsModelOf(t, 256) }

// SumsModelOf is SumsModel with rows of hidden columns.
func SumsModelOf(t *testing.T, hidden int) *plan.Program {
	rng := newRand(12)
	const heads, kvHeads, headDim, ffn = 16, 4, 64, 1024
	norm := func(n int) *tensor.Tensor { return vector(rng, "norm", 1, 0.1, n) }
	bias := func(n int) *tensor.Tensor { return vector(rng, "bias", 0, 0.1, n) }
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, hidden))
		for i, d := range []tensor.DType{tensor.Q8_0, tensor.BF16, tensor.F8_E4M3_32} {
			b.Layer(i)
			weight := func(s string, rows, cols int) *tensor.Tensor {
				if cols == hidden {
					return Weight(rng, s, d, 0.06, rows, cols)
				}
				return uneven(rng, fmt.Sprintf("%d.%s", i, s), d, rows, cols)
			}
			h := b.RMSNorm(x, norm(hidden), 1e-5)
			r := plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), Scale: 1}
			q, k := b.Linear(h, weight("q", heads*headDim, hidden), nil), b.Linear(h, weight("k", kvHeads*headDim, hidden), nil)
			v := b.Linear(h, weight("v", kvHeads*headDim, hidden), nil)
			s := b.State(plan.State{Name: fmt.Sprintf("%d.kv", i), Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: headDim})
			y := b.Attention(b.Rope(q, r), b.Rope(k, r), v, nil, s, plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 0.12})
			var attended, fed plan.Value
			switch i {
			case 0:
				attended = b.Linear(y, weight("o", hidden, heads*headDim), nil)
			case 1: // a scale, as Granite has
				attended = b.Scale(b.Linear(y, weight("o", hidden, heads*headDim), bias(hidden)), 0.5)
			case 2: // a norm before the residual, as Gemma 3 has
				attended = b.RMSNorm(b.Linear(y, weight("o", hidden, heads*headDim), bias(hidden)), norm(hidden), 1e-5)
			}
			x = b.Add(x, attended)
			h = b.RMSNorm(x, norm(hidden), 1e-5)
			g := b.GLU(b.Linear(h, weight("gate", ffn, hidden), nil), b.Linear(h, weight("up", ffn, hidden), bias(ffn)), plan.GLUAttr{Act: plan.SiLU})
			if fed = b.Linear(g, weight("down", hidden, ffn), bias(hidden)); i == 2 {
				fed = b.RMSNorm(fed, norm(hidden), 1e-5)
			}
			x = b.Add(x, fed)
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), norm(hidden), 1e-5)
		b.Output(h, b.Linear(h, Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, hidden), nil))
	})
}
