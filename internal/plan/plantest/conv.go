package plantest

import (
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// convolved computes the convolution of a whole sequence in float64.
func convolved(x, w [][]float64, bias []float64) [][]float64 {
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, len(w))
		for c, taps := range w {
			if bias != nil {
				y[t][c] = bias[c]
			}
			for i, tap := range taps {
				if from := t - len(taps) + 1 + i; from >= 0 {
					y[t][c] += tap * x[from][c]
				}
			}
		}
	}
	return y
}

// conv convolves several sequences cut into steps of several sizes. Some steps have fewer tokens
// than the state has rows.
func conv(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		width, taps int
		biased      bool
	}{{64, 3, false}, {256, 4, true}, {70, 4, false}, {1, 2, true}, {33, 9, true}} {
		rng := newRand(uint64(c.width))
		table, w := Weight(rng, "table", tensor.F32, 1, 41, c.width), Weight(rng, "w", tensor.F32, 1, c.width, c.taps)
		var bias *tensor.Tensor
		var biases []float64
		if c.biased {
			bias = vector(rng, "bias", 0, 1, c.width)
			biases = matrix(&tensor.Tensor{DType: tensor.F32, Shape: []int{1, c.width}, Data: bias.Data})[0]
		}
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			state := b.State(plan.State{Name: "tail", Kind: plan.PerSequence, Size: (c.taps - 1) * c.width})
			return b.Conv(x, w, bias, state)
		})
		r := runner(t, b, p, 200, 3, 100, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
		lists := [][]int32{ids(rng, 70, 41), ids(rng, 1, 41), ids(rng, 33, 41)}
		inSteps(t, r, fmt.Sprintf("%+v", c), lists, [][]int{{70, 1, 33}, {1, 1, 7}, {2, 1, 1}, {64, 1, 2}}, 1e-5, 0, func(list []int32) [][]float64 {
			return convolved(rowsOf(matrix(table), list), matrix(w), biases)
		})
	}
}

// convs convolves several values of a layer, which a backend may do together, with and without maps of
// the results.
func convs(t *testing.T, b plan.Backend) {
	rng := newRand(17)
	const in = 64
	table := Weight(rng, "table", tensor.F32, 1, 41, in)
	cases := []struct {
		width, taps int
		mapped      bool
	}{{64, 4, true}, {33, 4, false}, {300, 3, true}, {32, 2, true}, {5, 4, true}}
	var ins, ws []*tensor.Tensor
	for i, c := range cases {
		ins = append(ins, Weight(rng, fmt.Sprint("in", i), tensor.F32, 0.125, c.width, in))
		ws = append(ws, Weight(rng, fmt.Sprint("w", i), tensor.F32, 1, c.width, c.taps))
	}
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
		var all []plan.Value
		for i := range cases {
			all = append(all, b.Linear(x, ins[i], nil))
		}
		for i, c := range cases {
			all[i] = b.Conv(all[i], ws[i], nil, b.State(plan.State{Name: fmt.Sprint("tail", i), Kind: plan.PerSequence, Size: (c.taps - 1) * c.width}))
			if c.mapped {
				all[i] = b.Activate(all[i], plan.SiLU)
			}
		}
		y := all[0]
		for _, v := range all[1:] {
			y = b.Concat(y, v)
		}
		return y
	})
	r := runner(t, b, p, 200, 3, 100, plan.Limits{Cache: tensor.F16, Activations: b.Rounds()})
	lists := [][]int32{ids(rng, 40, 41), ids(rng, 1, 41), ids(rng, 33, 41)}
	inSteps(t, r, "convolutions", lists, [][]int{{40, 1, 33}, {1, 1, 7}}, 1e-5, 0, func(list []int32) [][]float64 {
		x := rowsOf(matrix(table), list)
		want := make([][]float64, len(x))
		for k, c := range cases {
			for row, y := range convolved(product(x, matrix(ins[k]), nil), matrix(ws[k]), nil) {
				for _, v := range y {
					if c.mapped {
						v = activated[plan.SiLU](v)
					}
					want[row] = append(want[row], v)
				}
			}
		}
		return want
	})
}

// RecurrentModel returns a small decoder of 97 tokens that has both states per sequence and pages
// of tokens: gated short convolutions as in LFM2, attention, and attention with a window. change is
// as for [Model].
func RecurrentModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(13)
	changed := applying(change)
	const heads, kvHeads, headDim, taps = 8, 2, 32, 3
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		for i, d := range []tensor.DType{tensor.Q4_K, tensor.Q8_0, tensor.BF16, tensor.Q6_K} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			linear := func(x plan.Value, s string, rows int) plan.Value {
				return b.Linear(x, changed(Weight(rng, name(s), d, 0.06, rows, b.Cols(x))), nil)
			}
			h := b.RMSNorm(x, changed(vector(rng, name("norm"), 1, 0.1, modelHidden)), 1e-5)
			if i%2 == 0 {
				state := b.State(plan.State{Name: name("tail"), Kind: plan.PerSequence, Size: (taps - 1) * modelHidden})
				y := b.Activate(linear(h, "in", modelHidden), plan.SiLU)
				y = b.Conv(y, Weight(rng, name("conv"), tensor.F32, 0.6, modelHidden, taps), vector(rng, name("conv.bias"), 0, 0.1, modelHidden), state)
				x = b.Add(x, linear(b.GLU(linear(h, "gate", modelHidden), y, plan.GLUAttr{Act: plan.SiLU}), "out", modelHidden))
				continue
			}
			a := plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 0.17}
			if i == 3 {
				a.Window = 50
			}
			state := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: headDim, Window: a.Window})
			y := b.Attention(linear(h, "q", heads*headDim), linear(h, "k", kvHeads*headDim), linear(h, "v", kvHeads*headDim), nil, state, a)
			x = b.Add(x, linear(y, "o", modelHidden))
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), changed(vector(rng, "last", 1, 0.1, modelHidden)), 1e-5)
		b.Output(h, b.Linear(h, changed(Weight(rng, "head", tensor.Q8_0, 0.06, modelVocab, modelHidden)), nil))
	})
}
