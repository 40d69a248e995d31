package arch_test

import (
	"fmt"
	"math"
	"testing"
)

// A bailingModel is what formulas need to know of a model of the Ling team.
type bailingModel struct {
	layers, heads, kv, head, turned, used int
	second                                bool // of the second version
	groups, groupsUsed                    int
	scale                                 float64
	normHead                              bool
}

// logits computes a model by the formulas of the modeling files beside the checkpoints.
func (m bailingModel) logits(f formulas, ids []int32) [][]float64 {
	norm := func(x [][]float64, format string, a ...any) [][]float64 {
		w := f.vector(format, a...)
		return each(x, func(x []float64) []float64 { return rootNorm(x, w, 1e-6) })
	}
	x := f.embedded(ids, "model.word_embeddings.weight")
	for i := range m.layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		h := f.linear(norm(x, "%sinput_layernorm.weight", at), "%sattention.query_key_value.weight", at)
		if name := at + "attention.query_key_value.bias"; f.has("%s", name) {
			bias := f.vector("%s", name)
			h = each(h, func(x []float64) []float64 { return both([][]float64{x}, [][]float64{bias}, plus)[0] })
		}
		part := func(first, heads int) [][]float64 {
			return each(h, func(x []float64) []float64 { return x[first*m.head : (first+heads)*m.head] })
		}
		q, k, v := part(0, m.heads), part(m.heads, m.kv), part(m.heads+m.kv, m.kv)
		if m.second {
			q, k = norm(q, "%sattention.query_layernorm.weight", at), norm(k, "%sattention.key_layernorm.weight", at)
		}
		for t := range q {
			q[t], k[t] = turnHalves(q[t], m.head, m.turned, t, 600000), turnHalves(k[t], m.head, m.turned, t, 600000)
		}
		x = both(x, f.linear(attendHeads(q, k, v, m.head, 0, 1/math.Sqrt(float64(m.head))), "%sattention.dense.weight", at), plus)
		h = norm(x, "%spost_attention_layernorm.weight", at)
		x = both(x, each(h, func(x []float64) []float64 { return m.mlp(f, at+"mlp.", x) }), plus)
	}
	head := f.rows("lm_head.weight")
	if m.normHead {
		for c := range head[0] {
			sum := 0.0
			for _, row := range head {
				sum += row[c] * row[c]
			}
			for _, row := range head {
				row[c] /= math.Sqrt(sum) + 1e-7
			}
		}
	}
	return each(norm(x, "model.norm.weight"), func(x []float64) []float64 { return times(head, x) })
}

func (m bailingModel) mlp(f formulas, at string, x []float64) []float64 {
	gated := func(at string) []float64 {
		return feed(f.rows("%sgate_proj.weight", at), f.rows("%sup_proj.weight", at), f.rows("%sdown_proj.weight", at), x)
	}
	if f.has("%sgate_proj.weight", at) {
		return gated(at)
	}
	p := times(f.rows("%sgate.weight", at), x)
	var chosen []int
	if !m.second {
		p = softmaxOf(p)
		chosen = best(p, m.used)
	} else {
		bias, choice := f.vector("%sgate.expert_bias", at), make([]float64, len(p))
		for e := range p {
			p[e] = sigmoid(p[e])
			choice[e] = p[e] + bias[e]
		}
		size, scores := len(p)/m.groups, make([]float64, m.groups)
		for g := range scores {
			group := choice[g*size : (g+1)*size]
			for _, e := range best(group, 2) {
				scores[g] += group[e]
			}
		}
		for _, g := range best(scores, m.groups)[m.groupsUsed:] {
			for e := range size {
				choice[g*size+e] = math.Inf(-1)
			}
		}
		chosen = best(choice, m.used)
	}
	y, total := gated(at+"shared_experts."), 0.0
	for _, e := range chosen {
		total += p[e]
	}
	for _, e := range chosen {
		for j, v := range gated(fmt.Sprintf("%sexperts.%d.", at, e)) {
			y[j] += m.scale * p[e] / total * v
		}
	}
	return y
}

// Programs compute the formulas.
func TestBailing(t *testing.T) {
	for name, want := range map[string]bailingModel{
		"bailing-moe":    {turned: 8, scale: 1, normHead: true},
		"bailing-moe-v2": {turned: 4, scale: 2.5, second: true, groups: 2, groupsUsed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := goldenModel(t, name).write(t)
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			want.layers, want.heads, want.kv, want.head, want.used = 2, 4, 2, 8, 2
			computes(t, m, testTokens, want.logits(formulasOf(t, path), testTokens))
		})
	}
}
