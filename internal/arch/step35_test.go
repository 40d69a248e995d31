package arch_test

import (
	"fmt"
	"math"
	"testing"
)

// stepLogits computes the tiny Step 3.5 by the formulas of the modeling file beside the checkpoint. The
// first layer sees all tokens and has a feed-forward layer, the second has a window and experts.
func stepLogits(f formulas, ids []int32) [][]float64 {
	const dim, eps = 8, 1e-5
	norm := func(x [][]float64, format string, a ...any) [][]float64 {
		w := f.vector(format, a...)
		for i := range w {
			w[i]++
		}
		return each(x, func(x []float64) []float64 { return rootNorm(x, w, eps) })
	}
	x := f.embedded(ids, "model.embed_tokens.weight")
	for i := range 2 {
		at := fmt.Sprintf("model.layers.%d.", i)
		h := norm(x, "%sinput_layernorm.weight", at)
		q, k := f.linear(h, "%sself_attn.q_proj.weight", at), f.linear(h, "%sself_attn.k_proj.weight", at)
		q, k = norm(q, "%sself_attn.q_norm.weight", at), norm(k, "%sself_attn.k_norm.weight", at)
		turn, window := scaledTurn, 0
		if i == 1 {
			turn, window = func(x []float64, pos int) []float64 { return turnHalves(x, dim, dim, pos, 10000) }, 6
		}
		for t := range q {
			q[t], k[t] = turn(q[t], t), turn(k[t], t)
		}
		y := attendHeads(q, k, f.linear(h, "%sself_attn.v_proj.weight", at), dim, window, 1/math.Sqrt(dim))
		for t, gates := range f.linear(h, "%sself_attn.g_proj.weight", at) {
			for j := range y[t] {
				y[t][j] *= sigmoid(gates[j/dim])
			}
		}
		x = both(x, f.linear(y, "%sself_attn.o_proj.weight", at), plus)
		h = norm(x, "%spost_attention_layernorm.weight", at)
		x = both(x, each(h, func(x []float64) []float64 {
			if i == 0 {
				return feed(f.rows("%smlp.gate_proj.weight", at), f.rows("%smlp.up_proj.weight", at), f.rows("%smlp.down_proj.weight", at), x)
			}
			return stepExperts(f, at, x)
		}), plus)
	}
	return f.linear(norm(x, "model.norm.weight"), "lm_head.weight")
}

// scaledTurn rotates half of each head of 8, with a base of 5e6 and frequencies that are scaled by 2 as
// in Llama 3 from 32 tokens on.
func scaledTurn(x []float64, pos int) []float64 {
	y := append([]float64{}, x...)
	for h := 0; h < len(x); h += 8 {
		for i := range 2 {
			freq := math.Pow(5e6, -float64(i)/2)
			switch length := 2 * math.Pi / freq; {
			case length > 32:
				freq /= 2
			case length >= 1:
				smooth := (32/length - 1) / 31
				freq = (1-smooth)*freq/2 + smooth*freq
			}
			sin, cos := math.Sincos(float64(pos) * freq)
			a, b := x[h+i], x[h+i+2]
			y[h+i], y[h+i+2] = a*cos-b*sin, b*cos+a*sin
		}
	}
	return y
}

// stepExperts is the sum of two of four experts and the shared one, whose activations are clamped.
func stepExperts(f formulas, at string, x []float64) []float64 {
	clamped := func(gate, up, down [][]float64, limit float64) []float64 {
		h := times(gate, x)
		for i, u := range times(up, x) {
			h[i] = math.Min(siluOf(h[i]), limit) * math.Max(-limit, math.Min(u, limit))
		}
		return times(down, h)
	}
	shared := func(name string) [][]float64 { return f.rows("%sshare_expert.%s_proj.weight", at, name) }
	y := clamped(shared("gate"), shared("up"), shared("down"), 0.04)
	p, bias := times(f.rows("%smoe.gate.weight", at), x), f.vector("%smoe.router_bias", at)
	choice := make([]float64, len(p))
	for e := range p {
		p[e] = sigmoid(p[e])
		choice[e] = p[e] + bias[e]
	}
	total := 0.0
	for _, e := range best(choice, 2) {
		total += p[e]
	}
	for _, e := range best(choice, 2) {
		of := func(name string, rows int) [][]float64 {
			return f.rows("%s.%s_proj.weight", at+"moe", name)[e*rows:][:rows]
		}
		for j, v := range clamped(of("gate", 8), of("up", 8), of("down", 16), 0.05) {
			y[j] += 3 * p[e] / total * v
		}
	}
	return y
}

// The program computes the formulas.
func TestStep35(t *testing.T) {
	path := goldenModel(t, "step35").write(t)
	m, err := buildFile(t, path)
	if err != nil {
		t.Fatal(err)
	}
	computes(t, m, testTokens, stepLogits(formulasOf(t, path), testTokens))
}
