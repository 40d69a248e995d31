package arch_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
)

// A minimaxModel is what formulas need to know of a model.
type minimaxModel struct {
	layers, heads, head, turned, window, used int
	linear                                    func(layer int) bool
	base, eps                                 float64
	full, lightning, mlp                      [2]float64 // factors of the stream and of results
	normed                                    bool

	block int // 0, or the length of blocks of tokens for which the file's tables hold powers of decays
}

// logits computes a model by its formulas.
func (m minimaxModel) logits(f formulas, ids []int32) [][]float64 {
	x := f.embedded(ids, "model.embed_tokens.weight")
	for i := range m.layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		sum := func(normed, y [][]float64, by [2]float64) {
			if m.normed {
				x = normed
			}
			x = both(x, y, func(a, b float64) float64 { return by[0]*a + by[1]*b })
		}
		normed := func(name string) [][]float64 {
			w := f.vector("%s", at+name)
			return each(x, func(x []float64) []float64 { return rootNorm(x, w, m.eps) })
		}
		h := normed("input_layernorm.weight")
		if m.linear(i) {
			sum(h, m.linearAttention(f, i, h), m.lightning)
		} else {
			sum(h, m.attention(f, at, h), m.full)
		}
		h = normed("post_attention_layernorm.weight")
		sum(h, m.experts(f, at, h), m.mlp)
	}
	w := f.vector("model.norm.weight")
	return f.linear(each(x, func(x []float64) []float64 { return rootNorm(x, w, m.eps) }), "lm_head.weight")
}

func (m minimaxModel) attention(f formulas, at string, x [][]float64) [][]float64 {
	var parts [3][][]float64
	for i, name := range []string{"q", "k", "v"} {
		parts[i] = f.linear(x, "%sself_attn.%s_proj.weight", at, name)
		for t := range x {
			if name != "v" {
				parts[i][t] = turnHalves(parts[i][t], m.head, m.turned, t, m.base)
			}
		}
	}
	return f.linear(attendHeads(parts[0], parts[1], parts[2], m.head, m.window, 1/math.Sqrt(float64(m.head))), "%sself_attn.o_proj.weight", at)
}

// linearAttention sums over all pairs of tokens.
func (m minimaxModel) linearAttention(f formulas, layer int, x [][]float64) [][]float64 {
	at := fmt.Sprintf("model.layers.%d.self_attn.", layer)
	qkv := each(f.linear(x, "%sqkv_proj.weight", at), func(x []float64) []float64 {
		for i, v := range x {
			x[i] = siluOf(v)
		}
		return x
	})
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, m.heads*m.head)
		for h := range m.heads {
			q := qkv[t][3*h*m.head:][:m.head]
			for i := range t + 1 {
				k, v := qkv[i][(3*h+1)*m.head:][:m.head], qkv[i][(3*h+2)*m.head:][:m.head]
				by := dotOf(q, k) * m.decay(f, layer, h, i, t)
				for j := range m.head {
					y[t][h*m.head+j] += by * v[j]
				}
			}
		}
		y[t] = rootNorm(y[t], f.vector("%snorm.weight", at), 1e-6)
	}
	y = both(f.linear(x, "%soutput_gate.weight", at), y, sigmoidGate)
	return f.linear(y, "%sout_proj.weight", at)
}

// decay returns what is left of token i at token t: exp(-slope) for each token between them. With
// blocks, this is a product of numbers that the file has in bfloat16: powers at the ends of blocks,
// and a slope whose power is that of a whole block.
func (m minimaxModel) decay(f formulas, layer, head, i, t int) float64 {
	slope := math.Pow(2, -8*float64(head+1)/float64(m.heads)) * (1 - float64(layer)/(float64(m.layers)-1+1e-5) + 1e-5)
	if m.block == 0 {
		return math.Exp(-slope * float64(t-i))
	}
	table := func(name string, at int) float64 {
		return f.vector("model.layers.%d.self_attn.%s", layer, name)[at]
	}
	from, to := i/m.block, t/m.block
	if from == to {
		return table("diagonal_decay", (head*m.block+t%m.block)*m.block+i%m.block)
	}
	between := math.Exp(-table("slope_rate", head) * float64(m.block*(to-from-1)))
	return table("query_decay", head*m.block+t%m.block) * between * table("key_decay", head*m.block+i%m.block)
}

func (m minimaxModel) experts(f formulas, at string, x [][]float64) [][]float64 {
	at += "block_sparse_moe."
	logits := f.linear(x, "%sgate.weight", at)
	y := make([][]float64, len(x))
	for t := range x {
		y[t] = make([]float64, len(x[t]))
		p, total := softmaxOf(logits[t]), 0.0
		chosen := best(p, m.used)
		for _, e := range chosen {
			total += p[e]
		}
		for _, e := range chosen {
			one := func(w string) [][]float64 { return f.rows("%sexperts.%d.%s.weight", at, e, w) }
			for j, v := range feed(one("w1"), one("w3"), one("w2"), x[t]) {
				y[t][j] += p[e] / total * v
			}
		}
	}
	return y
}

// Programs compute the formulas, with both names of the factors.
func TestMiniMax(t *testing.T) {
	ones := [2]float64{1, 1}
	for _, c := range []struct {
		plan   string
		config map[string]any
		want   minimaxModel
	}{
		{"minimax", nil, minimaxModel{turned: 8, linear: func(i int) bool { return i == 0 }, base: 1e4, eps: 1e-5, full: [2]float64{3.5, 1}, lightning: [2]float64{2, 0.5}, mlp: [2]float64{1.5, 0.75}, normed: true}},
		{"minimax", map[string]any{"layer_types": nil, "sliding_window": 9, "rms_norm_eps": 1e-3, "linear_attn_beta_factor": nil, "rope_theta": nil},
			minimaxModel{turned: 8, linear: func(i int) bool { return i == 1 }, window: 9, base: 1e6, eps: 1e-3, full: [2]float64{3.5, 1}, lightning: [2]float64{2, 1}, mlp: [2]float64{1.5, 0.75}, normed: true}},
		{"minimax-text-01", nil, minimaxModel{turned: 4, linear: func(i int) bool { return i == 0 }, base: 1e4, eps: 1e-5, full: [2]float64{3.5, 1}, lightning: [2]float64{2, 0.5}, mlp: [2]float64{1.5, 0.75}, normed: true}},
		{"minimax-m1", nil, minimaxModel{turned: 8, linear: func(i int) bool { return i == 0 }, base: 1e4, eps: 1e-5, full: ones, lightning: ones, mlp: ones}},
	} {
		path := goldenModel(t, c.plan).with(c.config, lightningFirst(c.want.linear(0))).write(t)
		m, err := buildFile(t, path)
		if err != nil {
			t.Fatal(err)
		}
		c.want.layers, c.want.heads, c.want.head, c.want.used = 2, 4, 8, 2
		computes(t, m, testTokens, c.want.logits(formulasOf(t, path), testTokens))
	}
}

// lightningFirst returns changes to a golden model for linear attention in the other layer.
func lightningFirst(first bool) map[string][]int {
	if first {
		return nil
	}
	changes := map[string][]int{}
	for _, name := range []string{"slope_rate", "query_decay", "key_decay", "diagonal_decay"} {
		changes["model.layers.0.self_attn."+name] = nil
	}
	for name, shape := range map[string][]int{"qkv_proj": {96, 16}, "norm": {32}, "output_gate": {32, 16}, "out_proj": {16, 32}} {
		changes["model.layers.0.self_attn."+name+".weight"], changes["model.layers.1.self_attn."+name+".weight"] = nil, shape
	}
	for name, shape := range map[string][]int{"q_proj": {32, 16}, "k_proj": {16, 16}, "v_proj": {16, 16}, "o_proj": {16, 32}} {
		changes["model.layers.1.self_attn."+name+".weight"], changes["model.layers.0.self_attn."+name+".weight"] = nil, shape
	}
	return changes
}

// transformers computes a prompt with powers of decays that the file has in bfloat16. With these the
// formulas give its logits, and without them those of the program.
func TestMiniMaxTables(t *testing.T) {
	path := filepath.Join(conformance(t), "hf-more", "minimax")
	e := expected(t, filepath.Join(path, "expected.safetensors"))
	m, err := buildFile(t, path)
	if err != nil {
		t.Fatal(err)
	}
	ones := [2]float64{1, 1}
	want := minimaxModel{layers: 4, heads: 4, head: 32, turned: 32, used: 2, linear: func(i int) bool { return i < 3 }, base: 1e6, eps: 1e-5, full: ones, lightning: ones, mlp: ones, normed: true}
	f := formulasOf(t, path)
	computes(t, m, e.ids, want.logits(f, e.ids))
	want.block = 32
	var rounded [][]float32
	for _, row := range want.logits(f, e.ids) {
		var r []float32
		for _, v := range row {
			r = append(r, float32(v))
		}
		rounded = append(rounded, r)
	}
	if rel := relative(rounded, e.logits); !(rel < 1e-5) {
		t.Errorf("relative error with the file's tables %.3g", rel)
	}
}
