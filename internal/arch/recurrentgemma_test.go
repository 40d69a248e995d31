package arch_test

import (
	"fmt"
	"math"
	"testing"
)

// griffinLogits computes a tiny RecurrentGemma by its formulas: a layer with the recurrence, and one
// with attention within a window.
func griffinLogits(f formulas, ids []int32, scale float64, heads, window int) [][]float64 {
	norm := func(x [][]float64, name string) [][]float64 {
		w := f.vector("%s", name)
		for i := range w {
			w[i]++
		}
		return each(x, func(x []float64) []float64 { return rootNorm(x, w, 1e-6) })
	}
	linear := func(x [][]float64, name string) [][]float64 {
		y := f.linear(x, "%s.weight", name)
		if f.has("%s.bias", name) {
			bias := f.vector("%s.bias", name)
			y = each(y, func(y []float64) []float64 {
				for i := range y {
					y[i] += bias[i]
				}
				return y
			})
		}
		return y
	}
	gelu := func(a, b float64) float64 {
		return b * a / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(a+0.044715*a*a*a)))
	}
	x := each(f.embedded(ids, "model.embed_tokens.weight"), func(x []float64) []float64 {
		for i := range x {
			x[i] *= scale
		}
		return x
	})
	for i := range 2 {
		at := fmt.Sprintf("model.layers.%d.", i)
		h, block := norm(x, at+"temporal_pre_norm.weight"), at+"temporal_block."
		if i == 0 {
			u := convolvedBy(f.rows("%sconv_1d.weight", block), f.vector("%sconv_1d.bias", block), linear(h, block+"linear_x"))
			h = linear(both(linear(h, block+"linear_y"), recurrentUnit(f, block+"rg_lru.", heads, u), gelu), block+"linear_out")
		} else {
			q, k, v := linear(h, block+"q_proj"), linear(h, block+"k_proj"), linear(h, block+"v_proj")
			dim := len(q[0]) / heads
			for t := range q {
				q[t], k[t] = turnHalves(q[t], dim, dim/2, t, 1e4), turnHalves(k[t], dim, dim/2, t, 1e4)
			}
			h = linear(attendHeads(q, k, v, dim, window, 1/math.Sqrt(float64(dim))), block+"o_proj")
		}
		x = both(x, h, plus)
		h = norm(x, at+"channel_pre_norm.weight")
		x = both(x, linear(both(linear(h, at+"mlp_block.gate_proj"), linear(h, at+"mlp_block.up_proj"), gelu), at+"mlp_block.down_proj"), plus)
	}
	return each(f.linear(norm(x, "model.final_norm.weight"), "model.embed_tokens.weight"), func(x []float64) []float64 {
		for i := range x {
			x[i] = 30 * math.Tanh(x[i]/30)
		}
		return x
	})
}

// convolvedBy returns the convolution of each column over the tokens before.
func convolvedBy(taps [][]float64, bias []float64, x [][]float64) [][]float64 {
	y := make([][]float64, len(x))
	for t := range x {
		for c, w := range taps {
			sum := bias[c]
			for i, by := range w {
				if from := t - len(w) + 1 + i; from >= 0 {
					sum += by * x[from][c]
				}
			}
			y[t] = append(y[t], sum)
		}
	}
	return y
}

// recurrentUnit is the real-gated linear recurrent unit.
func recurrentUnit(f formulas, at string, heads int, x [][]float64) [][]float64 {
	rate, width := f.vector("%srecurrent_param", at), len(x[0])/heads
	gate := func(name string, t, c int) float64 {
		w, sum := f.rows("%s%s_weight", at, name), f.vector("%s%s_bias", at, name)[c]
		for i := range width {
			sum += x[t][c/width*width+i] * w[c/width*width+i][c%width]
		}
		return sigmoid(sum)
	}
	y := make([][]float64, len(x))
	for t := range x {
		for c, v := range x[t] {
			in := v * gate("input_gate", t, c)
			if t == 0 {
				y[t] = append(y[t], in)
				continue
			}
			a := math.Exp(-8 * math.Log1p(math.Exp(rate[c])) * gate("recurrent_gate", t, c))
			y[t] = append(y[t], a*y[t-1][c]+math.Sqrt(1-a*a)*in)
		}
	}
	return y
}

// The program computes the formulas. The root of the width is rounded to BF16.
func TestRecurrentGemma(t *testing.T) {
	path := goldenModel(t, "recurrent-gemma").write(t)
	m, err := buildFile(t, path)
	if err != nil {
		t.Fatal(err)
	}
	computes(t, m, testTokens, griffinLogits(formulasOf(t, path), testTokens, 4.90625, 2, 8))
}
