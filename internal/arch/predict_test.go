package arch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A headReference computes the module of multi-token prediction in float64, from the formulas of
// DeepSeek-V3's technical report (section 2.2) and of each model's layer.
type headReference struct {
	f      *modelfile.File
	prefix string            // of the layer's tensors
	names  map[string]string // from the names of GLM's checkpoints
	top    [3]string         // embedding, head, and norm of the module

	heads, kv, dim, value int
	turned                int
	interleaved           bool
	base, eps, plus       float64
	qkNorm, gated, sinks  bool
	window                int
	valueScale            float64
	rank, plain           int // of latent attention

	used, groups, groupsUsed int
	softmax, sharedGate      bool
	scale                    float64
}

func (h *headReference) tensor(name string) []float64 {
	if other, ok := h.names[name]; ok {
		name = other
	}
	w, ok := h.f.Tensor(h.prefix + name)
	if !ok {
		w, ok = h.f.Tensor(name)
	}
	if !ok {
		return nil
	}
	values, err := w.Float32s()
	if err != nil {
		panic(err)
	}
	return widened(values)
}

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// times returns the product of a matrix and x, with a bias if there is one.
func (h *headReference) times(name string, x []float64) []float64 {
	return plusBias(timesMatrix(h.tensor(name+".weight"), x), h.tensor(name+".bias"))
}

func timesMatrix(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for r := range y {
		for i, v := range x {
			y[r] += w[r*len(x)+i] * v
		}
	}
	return y
}

func plusBias(x, bias []float64) []float64 {
	for i, b := range bias {
		x[i] += b
	}
	return x
}

func (h *headReference) norm(name string, x []float64) []float64 {
	w, sum, y := h.tensor(name+".weight"), 0.0, make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y[i] = v / math.Sqrt(sum/float64(len(x))+h.eps) * (w[i%len(w)] + h.plus)
	}
	return y
}

// turn rotates elements first to first+turned of a head.
func (h *headReference) turn(x []float64, first, position int) {
	for i := range h.turned / 2 {
		p, q := first+i, first+i+h.turned/2
		if h.interleaved {
			p, q = first+2*i, first+2*i+1
		}
		sin, cos := math.Sincos(float64(position) * math.Pow(h.base, -2*float64(i)/float64(h.turned)))
		x[p], x[q] = x[p]*cos-x[q]*sin, x[q]*cos+x[p]*sin
	}
}

// attend returns the results of attention for the last of rows, which are the inputs of positions from
// 1 on.
func (h *headReference) attend(rows [][]float64) []float64 {
	var keys, values [][][]float64 // by position and head
	var query, gate [][]float64
	for i, x := range rows {
		var q, k, v [][]float64
		if h.rank > 0 {
			q = parts(h.times("self_attn.q_b_proj", h.norm("self_attn.q_a_layernorm", h.times("self_attn.q_a_proj", x))), h.plain+h.turned)
			both := h.times("self_attn.kv_a_proj_with_mqa", x)
			r := both[h.rank:]
			h.turn(r, 0, i+1)
			for _, kv := range parts(h.times("self_attn.kv_b_proj", h.norm("self_attn.kv_a_layernorm", both[:h.rank])), h.plain+h.value) {
				k, v = append(k, slices.Concat(kv[:h.plain], r)), append(v, kv[h.plain:])
			}
			for _, q := range q {
				h.turn(q, h.plain, i+1)
			}
		} else {
			width := h.dim
			if h.gated {
				width *= 2
			}
			gate = nil
			for _, both := range parts(h.times("self_attn.q_proj", x), width) {
				q, gate = append(q, both[:h.dim]), append(gate, both[h.dim:])
			}
			k, v = parts(h.times("self_attn.k_proj", x), h.dim), parts(h.times("self_attn.v_proj", x), h.value)
			for j, heads := range [][][]float64{q, k} {
				for n := range heads {
					if h.qkNorm {
						heads[n] = h.norm([]string{"self_attn.q_norm", "self_attn.k_norm"}[j], heads[n])
					}
					h.turn(heads[n], 0, i+1)
				}
			}
		}
		query, keys, values = q, append(keys, k), append(values, v)
	}
	var out []float64
	for n, q := range query {
		at, first := n*len(keys[0])/h.heads, 0
		if h.window > 0 {
			first = max(0, len(rows)-h.window)
		}
		var weights []float64
		total := 0.0
		if h.sinks {
			total = math.Exp(h.tensor("self_attn.attention_sink_bias")[n])
		}
		for _, k := range keys[first:] {
			score := 0.0
			for i, v := range q {
				score += v * k[at][i] / math.Sqrt(float64(len(q)))
			}
			weights = append(weights, math.Exp(score))
			total += weights[len(weights)-1]
		}
		y := make([]float64, h.value)
		for p, w := range weights {
			for i, v := range values[first+p][at] {
				y[i] += w / total * v * cmp.Or(h.valueScale, 1)
			}
		}
		for i := range y {
			if h.gated {
				y[i] *= 1 / (1 + math.Exp(-gate[n][i]))
			}
		}
		out = append(out, y...)
	}
	return h.times("self_attn.o_proj", out)
}

func parts(x []float64, n int) (all [][]float64) {
	for at := 0; at < len(x); at += n {
		all = append(all, x[at:at+n])
	}
	return all
}

// unit is a gated feed-forward layer.
func (h *headReference) unit(name string, x []float64) []float64 {
	gate, up := h.times(name+"gate_proj", x), h.times(name+"up_proj", x)
	for i, g := range gate {
		up[i] *= g * sigmoid(g)
	}
	return h.times(name+"down_proj", up)
}

func (h *headReference) feedForward(x []float64) []float64 {
	if h.used == 0 {
		return h.unit("mlp.", x)
	}
	scores := h.times("mlp.gate", x)
	total := 0.0
	for i, s := range scores {
		if scores[i] = sigmoid(s); h.softmax {
			scores[i] = math.Exp(s)
		}
		total += scores[i]
	}
	choice, order := slices.Clone(scores), make([]int, len(scores))
	plusBias(choice, h.tensor("mlp.gate.e_score_correction_bias"))
	for i := range order {
		order[i] = i
	}
	if h.groups > 1 { // a group's score is the sum of its two best
		size := len(choice) / h.groups
		sums := make([]float64, h.groups)
		for g := range sums {
			best := slices.Sorted(slices.Values(choice[g*size : (g+1)*size]))
			sums[g] = best[size-1] + best[size-2]
		}
		least := slices.Sorted(slices.Values(sums))[h.groups-h.groupsUsed]
		order = slices.DeleteFunc(order, func(i int) bool { return sums[i/size] < least })
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(choice[b], choice[a]) })
	sum, out := 0.0, make([]float64, len(x))
	for _, i := range order[:h.used] {
		sum += scores[i]
	}
	for _, i := range order[:h.used] {
		for j, v := range h.unit(fmt.Sprintf("mlp.experts.%d.", i), x) {
			out[j] += v * scores[i] / sum * cmp.Or(h.scale, 1)
		}
	}
	shared, weight := "mlp.shared_experts.", 1.0
	if h.sharedGate {
		shared, weight = "mlp.shared_expert.", sigmoid(h.times("mlp.shared_expert_gate", x)[0])
	}
	for j, v := range h.unit(shared, x) {
		out[j] += v * weight
	}
	return out
}

func (h *headReference) features(_ []int32, hidden [][]float64) [][]float64 { return hidden }

func (h *headReference) run(tokens []int32, hidden [][]float64) (out, logits []float64) {
	var rows, streams [][]float64
	for i, id := range tokens {
		width := len(hidden[i])
		e := h.norm("enorm", h.tensor(h.top[0])[int(id)*width:][:width])
		x := h.times("eh_proj", slices.Concat(e, h.norm("hnorm", hidden[i])))
		streams, rows = append(streams, x), append(rows, h.norm("input_layernorm", x))
	}
	x := plusBias(streams[len(streams)-1], h.attend(rows))
	x = plusBias(x, h.feedForward(h.norm("post_attention_layernorm", x)))
	out = h.norm(h.top[2], x)
	return out, timesMatrix(h.tensor(h.top[1]), out)
}

// What heads predict, for a chain of three, agrees with the reference, whatever the steps before were.
func TestPredicting(t *testing.T) {
	glm := map[string][]int{
		"model.layers.2.enorm.weight": {16}, "model.layers.2.hnorm.weight": {16}, "model.layers.2.shared_head.norm.weight": {16},
	}
	qwen := map[string][]int{
		"mtp.fc.weight": {16, 32}, "mtp.pre_fc_norm_embedding.weight": {16}, "mtp.pre_fc_norm_hidden.weight": {16}, "mtp.norm.weight": {16},
	}
	qwenNames := map[string]string{"enorm.weight": "mtp.pre_fc_norm_embedding.weight", "hnorm.weight": "mtp.pre_fc_norm_hidden.weight", "eh_proj.weight": "mtp.fc.weight"}
	const embedding, output = "model.embed_tokens.weight", "lm_head.weight"
	gguf := map[string]string{
		"enorm.weight": "nextn.enorm.weight", "hnorm.weight": "nextn.hnorm.weight", "eh_proj.weight": "nextn.eh_proj.weight",
		"input_layernorm.weight": "attn_norm.weight", "post_attention_layernorm.weight": "post_attention_norm.weight",
		"self_attn.q_proj.weight": "attn_q.weight", "self_attn.k_proj.weight": "attn_k.weight", "self_attn.v_proj.weight": "attn_v.weight",
		"self_attn.o_proj.weight": "attn_output.weight", "self_attn.q_norm.weight": "attn_q_norm.weight", "self_attn.k_norm.weight": "attn_k_norm.weight",
		"mlp.gate_proj.weight": "ffn_gate.weight", "mlp.up_proj.weight": "ffn_up.weight", "mlp.down_proj.weight": "ffn_down.weight",
	}
	for _, c := range []struct {
		name, plan string
		config     map[string]any
		more       map[string][]int
		like, as   string // tensors of a layer that the module has too, and what their names begin with there
		reference  headReference
	}{
		{"GLM-4.5", "glm4-moe", map[string]any{"n_group": 1}, glm, "model.layers.1.", "model.layers.2.", headReference{
			prefix: "model.layers.2.", top: [3]string{embedding, "shared_head.head.weight", "shared_head.norm"},
			heads: 4, kv: 2, dim: 8, value: 8, turned: 4, base: 1000, eps: 1e-5, qkNorm: true, used: 2, scale: 2.5}},
		{"DeepSeek-V3", "deepseek-v3", map[string]any{"rope_parameters": nil, "rope_theta": 1000.0}, glm, "model.layers.1.", "model.layers.2.", headReference{
			prefix: "model.layers.2.", top: [3]string{embedding, output, "shared_head.norm"},
			heads: 4, value: 4, turned: 2, interleaved: true, base: 1000, eps: 1e-6, rank: 8, plain: 4, used: 2, groups: 2, groupsUsed: 1, scale: 2.5}},
		{"Qwen3-Next", "qwen3-next", nil, qwen, "model.layers.1.", "mtp.layers.0.", headReference{
			prefix: "mtp.layers.0.", names: qwenNames, top: [3]string{embedding, output, "mtp.norm"},
			heads: 4, kv: 2, dim: 8, value: 8, turned: 2, base: 1000, eps: 1e-6, plus: 1, qkNorm: true, gated: true, used: 2, softmax: true, sharedGate: true}},
		{"Qwen3.5", "qwen3-5", nil, qwen, "model.layers.1.", "mtp.layers.0.", headReference{
			prefix: "mtp.layers.0.", names: qwenNames, top: [3]string{embedding, output, "mtp.norm"},
			heads: 4, kv: 2, dim: 8, value: 8, turned: 2, base: 1000, eps: 1e-6, plus: 1, qkNorm: true, gated: true}},
		{"Qwen3.5 in GGUF", "qwen3-5-gguf", map[string]any{"block_count": 3, "nextn_predict_layers": 1}, map[string][]int{
			"blk.2.nextn.enorm.weight": {16}, "blk.2.nextn.hnorm.weight": {16}, "blk.2.nextn.eh_proj.weight": {16, 32}, "blk.2.nextn.shared_head_norm.weight": {16},
		}, "blk.1.", "blk.2.", headReference{
			prefix: "blk.2.", names: gguf, top: [3]string{"token_embd.weight", "output.weight", "nextn.shared_head_norm"},
			heads: 4, kv: 2, dim: 8, value: 8, turned: 2, base: 1000, eps: 1e-6, qkNorm: true, gated: true}},
		{"MiMo-V2-Flash", "mimo-v2-flash", nil, map[string][]int{
			"model.mtp.layers.0.hnorm.weight": {16}, "model.mtp.layers.0.pre_mlp_layernorm.weight": {16}, "model.mtp.layers.0.final_layernorm.weight": {16},
			"model.mtp.layers.0.mlp.gate_proj.weight": {24, 16}, "model.mtp.layers.0.mlp.up_proj.weight": {24, 16}, "model.mtp.layers.0.mlp.down_proj.weight": {16, 24},
		}, "model.layers.1.", "model.mtp.layers.0.", headReference{
			prefix: "model.mtp.layers.0.", names: map[string]string{"post_attention_layernorm.weight": "pre_mlp_layernorm.weight"}, top: [3]string{embedding, output, "final_layernorm"},
			heads: 4, kv: 2, dim: 12, value: 8, turned: 4, base: 10000, eps: 1e-5, window: 5, sinks: true, valueScale: 0.707}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := goldenModel(t, c.plan).with(c.config, c.more)
			for name, shape := range expand(m.tensors, "#", tinyLayers) {
				if own, ok := strings.CutPrefix(name, c.like); ok && m.tensors[c.as+own] == nil {
					m.tensors[c.as+own] = shape
				}
			}
			f, err := modelfile.Open(m.write(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if c.reference.f = f; c.reference.top[0] == "" {
				t.Fatal("no embedding")
			}
			for _, b := range headBackends(t) {
				for _, chunk := range []int{1, 4, 40} {
					comparePredictions(t, b, func() (*arch.Model, error) { return arch.BuildPredicting(f) }, &c.reference, chunk)
				}
			}
		})
	}
}

// deviceOfHeads returns a GPU, for tests of programs with heads; nil without one.
var deviceOfHeads func(t *testing.T) plan.Backend

// headBackends returns the backends that are compared with the references of heads.
func headBackends(t *testing.T) []plan.Backend {
	if deviceOfHeads != nil {
		return []plan.Backend{deviceOfHeads(t)}
	}
	return []plan.Backend{cpu.Reference(), cpu.New(2)}
}

// A predictions is a reference of what a head predicts.
type predictions interface {
	// features returns the hidden states that the head reads of tokens, for which the program's own
	// are hidden.
	features(tokens []int32, hidden [][]float64) [][]float64
	// run returns the head's hidden state and logits for the last of tokens, which are those of
	// positions from 1 on. hidden are the hidden states of the positions before them.
	run(tokens []int32, hidden [][]float64) (out, logits []float64)
}

// comparePredictions runs a text of 40 tokens in steps of that many, and then the head three times.
func comparePredictions(t *testing.T, b plan.Backend, build func() (*arch.Model, error), reference predictions, chunk int) {
	t.Helper()
	m, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const n, chain = 40, 3
	p := m.Program
	limits := plantest.LimitsFor(p, n, 1, 64, n, plan.Limits{Cache: tensor.F32})
	e, err := b.Compile(context.Background(), p, limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	slot := int32(-1) // that the last step wrote
	run := func(head bool, first int, want plan.Want, tokens ...int32) *plan.Result {
		t.Helper()
		batch := &plan.Batch{Head: head, Tokens: tokens, Start: []int32{0, int32(len(tokens))}, Lengths: []int32{n}, Tables: make([]plan.PageTable, len(p.Groups))}
		for i := range tokens {
			batch.Positions = append(batch.Positions, int32(first+i))
			batch.Rows = append(batch.Rows, plan.Row{Token: int32(i), Want: want})
		}
		end := first + len(tokens)
		for g, group := range p.Groups {
			table := &batch.Tables[g]
			table.Reset()
			switch {
			case !p.Uses(g, head):
				table.Add(0)
			case group.Kind == plan.PerToken:
				table.Add(0, []int32{0, 1}[:(end+limits.PageTokens-1)/limits.PageTokens]...)
			case group.Every > 0:
				table.AddSlots(-1, -1)
			default:
				table.AddSlots(slot, (slot+1)%2)
			}
		}
		if !head {
			slot = (slot + 1) % 2
		}
		step, err := e.Submit(batch)
		if err != nil {
			t.Fatal(err)
		}
		res, err := step.Wait(context.Background())
		if err = errors.Join(err, errors.Join(res.Err...)); err != nil {
			t.Fatal(err)
		}
		return res
	}
	var tokens []int32
	for i := range n + chain {
		tokens = append(tokens, int32(i*7+i*i)%32)
	}
	var hidden [][]float64
	for at := 0; at < n; at += chunk {
		for _, h := range run(false, at, plan.WantHidden, tokens[at:min(n, at+chunk)]...).Hidden {
			hidden = append(hidden, widened(h))
		}
	}
	hidden = reference.features(tokens[:n], hidden)
	for i := range chain {
		at := len(hidden)
		got := run(true, at, plan.WantLogits|plan.WantHidden, tokens[at])
		out, logits := reference.run(tokens[1:at+1], hidden)
		largest := 0.0
		for _, v := range logits {
			if v != plan.Absent {
				largest = max(largest, math.Abs(v))
			}
		}
		for k, v := range logits {
			if off := math.Abs(v - float64(got.Logits[0][k])); off > 1e-5*largest && got.Logits[0][k] != float32(v) {
				t.Fatalf("%s, steps of %d, token %d of a chain: logit %d is %v, want %v", b.Name(), chunk, i, k, got.Logits[0][k], v)
			}
		}
		hidden = append(hidden, out)
	}
}
