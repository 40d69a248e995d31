package arch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A shape describes a model file to write and the model that it must be.
type shape struct {
	arch string // GGUF's name
	hub  bool   // a folder with safetensors instead of GGUF

	hidden, heads, kvHeads, headDim, ffn, layers, vocab int

	dtypes                     []tensor.DType // of the matrices, used in turn
	qkvBias, outBias, mlpBias  bool
	fusedQKV, fusedFFN, qkNorm bool
	tied, headBesideTie        bool
	window                     int
	hideHeadDim                bool // the file omits it

	config map[string]any // added or changed keys
	drop   []string       // keys left out
	spoil  func(tensors map[string]*tensor.Tensor)
}

func small(arch string) shape {
	return shape{arch: arch, hidden: 32, heads: 4, kvHeads: 2, headDim: 8, ffn: 48, layers: 2, vocab: 40, dtypes: []tensor.DType{tensor.F32}, qkNorm: arch == "qwen3", qkvBias: arch == "qwen2"}
}

// A toy is the weights of a shape by GGUF's names, neither fused nor permuted.
type toy struct {
	shape
	w map[string]*tensor.Tensor
}

func newToy(s shape) *toy {
	m := &toy{s, map[string]*tensor.Tensor{}}
	rng := rand.New(rand.NewPCG(3, 4))
	matrices := 0
	matrix := func(name string, rows, cols int) {
		m.w[name+".weight"] = plantest.Weight(rng, name, s.dtypes[matrices%len(s.dtypes)], 0.15, rows, cols)
		matrices++
	}
	vector := func(name string, n int) { m.w[name] = plantest.Weight(rng, name, tensor.F32, 0.5, n) }
	bias := func(has bool, name string, n int) {
		if has {
			vector(name+".bias", n)
		}
	}
	matrix("token_embd", s.vocab, s.hidden)
	vector("output_norm.weight", s.hidden)
	if !s.tied || s.headBesideTie {
		matrix("output", s.vocab, s.hidden)
	}
	for i := range s.layers {
		p := fmt.Sprintf("blk.%d.", i)
		vector(p+"attn_norm.weight", s.hidden)
		vector(p+"ffn_norm.weight", s.hidden)
		matrix(p+"attn_q", s.heads*s.headDim, s.hidden)
		matrix(p+"attn_k", s.kvHeads*s.headDim, s.hidden)
		matrix(p+"attn_v", s.kvHeads*s.headDim, s.hidden)
		matrix(p+"attn_output", s.hidden, s.heads*s.headDim)
		matrix(p+"ffn_gate", s.ffn, s.hidden)
		matrix(p+"ffn_up", s.ffn, s.hidden)
		matrix(p+"ffn_down", s.hidden, s.ffn)
		bias(s.qkvBias, p+"attn_q", s.heads*s.headDim)
		bias(s.qkvBias, p+"attn_k", s.kvHeads*s.headDim)
		bias(s.qkvBias, p+"attn_v", s.kvHeads*s.headDim)
		bias(s.outBias, p+"attn_output", s.hidden)
		bias(s.mlpBias, p+"ffn_gate", s.ffn)
		bias(s.mlpBias, p+"ffn_up", s.ffn)
		bias(s.mlpBias, p+"ffn_down", s.hidden)
		if s.qkNorm {
			vector(p+"attn_q_norm.weight", s.headDim)
			vector(p+"attn_k_norm.weight", s.headDim)
		}
	}
	return m
}

// write writes the file for the shape and returns its path.
func (m *toy) write(t *testing.T) string {
	t.Helper()
	tensors := maps.Clone(m.w)
	for i := range m.layers {
		p := fmt.Sprintf("blk.%d.", i)
		if m.arch == "llama" && !m.hub {
			for _, suffix := range []string{".weight", ".bias"} {
				permute(tensors, p+"attn_q"+suffix, m.heads)
				permute(tensors, p+"attn_k"+suffix, m.kvHeads)
			}
		}
		for _, suffix := range []string{".weight", ".bias"} {
			if m.fusedQKV {
				fuse(tensors, p+"attn_qkv"+suffix, p+"attn_q"+suffix, p+"attn_k"+suffix, p+"attn_v"+suffix)
			}
			if m.fusedFFN && m.hub {
				fuse(tensors, p+"ffn_gate_up"+suffix, p+"ffn_gate"+suffix, p+"ffn_up"+suffix)
			} else if m.fusedFFN {
				fuse(tensors, p+"ffn_up"+suffix, p+"ffn_gate"+suffix, p+"ffn_up"+suffix)
			}
		}
	}
	if m.spoil != nil {
		m.spoil(tensors)
	}
	var list []*tensor.Tensor
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		w := *tensors[name]
		if w.Name = name; m.hub {
			w.Name = hubName(name)
		}
		list = append(list, &w)
	}
	if m.hub {
		return m.writeHub(t, list)
	}
	return m.writeGGUF(t, list)
}

// permute reorders each head's rows as GGUF does for llama: row i of the first half next to row i
// of the second.
func permute(tensors map[string]*tensor.Tensor, name string, heads int) {
	w := tensors[name]
	if w == nil {
		return
	}
	p := *w
	rows, size := w.Elems(), w.DType.BlockBytes()
	if len(w.Shape) == 2 {
		rows, size = w.Rows(), w.RowBytes()
	}
	p.Data = make([]byte, 0, len(w.Data))
	dim := rows / heads
	for h := range heads {
		for i := range dim / 2 {
			for _, r := range []int{h*dim + i, h*dim + i + dim/2} {
				p.Data = append(p.Data, w.Data[r*size:(r+1)*size]...)
			}
		}
	}
	tensors[name] = &p
}

func fuse(tensors map[string]*tensor.Tensor, into string, parts ...string) {
	if tensors[parts[0]] == nil {
		return
	}
	first := tensors[parts[0]]
	w := &tensor.Tensor{DType: first.DType, Shape: slices.Clone(first.Shape)}
	w.Shape[0] = 0
	for _, name := range parts {
		w.Data = append(w.Data, tensors[name].Data...)
		w.Shape[0] += tensors[name].Shape[0]
		delete(tensors, name)
	}
	tensors[into] = w
}

func hubName(name string) string {
	return strings.NewReplacer("blk.", "model.layers.", "token_embd", "model.embed_tokens", "output_norm", "model.norm",
		"attn_q_norm", "self_attn.q_norm", "attn_k_norm", "self_attn.k_norm", "attn_norm", "input_layernorm", "ffn_norm", "post_attention_layernorm",
		"attn_qkv", "self_attn.qkv_proj", "attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj", "attn_v", "self_attn.v_proj", "attn_output", "self_attn.o_proj",
		"ffn_gate_up", "mlp.gate_up_proj", "ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj", "output.", "lm_head.").Replace(name)
}

func (m *toy) writeHub(t *testing.T, list []*tensor.Tensor) string {
	dir := t.TempDir()
	config := map[string]any{
		"architectures": []string{map[string]string{"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[m.arch]},
		"hidden_act":    "silu", "num_hidden_layers": m.layers, "hidden_size": m.hidden, "intermediate_size": m.ffn, "num_attention_heads": m.heads,
		"num_key_value_heads": m.kvHeads, "head_dim": m.headDim, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
		"attention_bias": m.qkvBias, "mlp_bias": m.mlpBias, "tie_word_embeddings": m.tied,
		"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 1000.0},
	}
	if m.arch == "mistral" {
		config["sliding_window"] = nil
		if m.window > 0 {
			config["sliding_window"] = m.window
		}
	}
	maps.Copy(config, m.config)
	for _, key := range m.drop {
		delete(config, key)
	}
	if m.hideHeadDim {
		delete(config, "head_dim")
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var weights bytes.Buffer
	if err := modelfile.WriteSafetensors(&weights, list); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": data, "model.safetensors": weights.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (m *toy) writeGGUF(t *testing.T, list []*tensor.Tensor) string {
	key := func(k string) string { return m.arch + "." + k }
	config := map[string]any{
		"general.architecture": m.arch, key("block_count"): uint32(m.layers), key("embedding_length"): uint32(m.hidden),
		key("feed_forward_length"): uint32(m.ffn), key("attention.head_count"): uint32(m.heads), key("attention.head_count_kv"): uint32(m.kvHeads),
		key("attention.key_length"): uint32(m.headDim), key("attention.value_length"): uint32(m.headDim), key("context_length"): uint32(128),
		key("attention.layer_norm_rms_epsilon"): float32(1e-5), key("rope.freq_base"): float32(1000), key("rope.dimension_count"): uint32(m.headDim),
	}
	if m.hideHeadDim {
		m.drop = append(m.drop, key("attention.key_length"), key("attention.value_length"), key("rope.dimension_count"))
	}
	if m.window > 0 {
		config[key("attention.sliding_window")] = uint32(m.window)
	}
	maps.Copy(config, m.config)
	for _, k := range m.drop {
		delete(config, k)
	}
	var meta []modelfile.KeyValue
	for _, k := range slices.Sorted(maps.Keys(config)) {
		meta = append(meta, modelfile.KeyValue{Key: k, Value: config[k]})
	}
	var data bytes.Buffer
	if err := modelfile.WriteGGUF(&data, meta, list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// logits computes the whole model in plain float64: no cache, no pages, no plan, no fused or
// permuted weights. freqs and scale are the parameters of the rope.
func (m *toy) logits(ids []int32, freqs []float64, scale float64) [][]float64 {
	weight := func(name string) []float64 {
		w := m.w[name]
		if w == nil {
			return nil
		}
		values, err := w.Float32s()
		if err != nil {
			panic(err)
		}
		out := make([]float64, len(values))
		for i, v := range values {
			out[i] = float64(v)
		}
		return out
	}
	project := func(name string, x []float64) []float64 {
		w, bias := weight(name+".weight"), weight(name+".bias")
		y := make([]float64, len(w)/len(x))
		for o := range y {
			for i, v := range x {
				y[o] += w[o*len(x)+i] * v
			}
			if bias != nil {
				y[o] += bias[o]
			}
		}
		return y
	}
	norm := func(name string, x []float64) []float64 {
		w := weight(name + ".weight")
		if w == nil {
			return x
		}
		y := make([]float64, len(x))
		for g := 0; g < len(x); g += len(w) {
			sum := 0.0
			for _, v := range x[g : g+len(w)] {
				sum += v * v
			}
			for i := range w {
				y[g+i] = x[g+i] / math.Sqrt(sum/float64(len(w))+float64(float32(1e-5))) * w[i]
			}
		}
		return y
	}
	turn := func(x []float64, pos int) []float64 {
		y := slices.Clone(x)
		half := m.headDim / 2
		for h := 0; h < len(x); h += m.headDim {
			for i, f := range freqs {
				sin, cos := math.Sincos(float64(pos) * f)
				y[h+i], y[h+i+half] = (x[h+i]*cos-x[h+i+half]*sin)*scale, (x[h+i]*sin+x[h+i+half]*cos)*scale
			}
		}
		return y
	}
	table := weight("token_embd.weight")
	xs := make([][]float64, len(ids))
	for t, id := range ids {
		xs[t] = slices.Clone(table[int(id)*m.hidden : (int(id)+1)*m.hidden])
	}
	for l := range m.layers {
		p := fmt.Sprintf("blk.%d.", l)
		q, k, v := make([][]float64, len(xs)), make([][]float64, len(xs)), make([][]float64, len(xs))
		for t, x := range xs {
			h := norm(p+"attn_norm", x)
			q[t] = turn(norm(p+"attn_q_norm", project(p+"attn_q", h)), t)
			k[t] = turn(norm(p+"attn_k_norm", project(p+"attn_k", h)), t)
			v[t] = project(p+"attn_v", h)
		}
		for t := range xs {
			o, first := make([]float64, m.heads*m.headDim), 0
			if m.window > 0 {
				first = max(0, t+1-m.window)
			}
			for h := range m.heads {
				g, sum := h/(m.heads/m.kvHeads)*m.headDim, 0.0
				weights := make([]float64, t+1)
				for u := first; u <= t; u++ {
					s := 0.0
					for i := range m.headDim {
						s += q[t][h*m.headDim+i] * k[u][g+i]
					}
					weights[u] = math.Exp(s / math.Sqrt(float64(m.headDim)))
					sum += weights[u]
				}
				for u := first; u <= t; u++ {
					for i := range m.headDim {
						o[h*m.headDim+i] += weights[u] / sum * v[u][g+i]
					}
				}
			}
			for i, y := range project(p+"attn_output", o) {
				xs[t][i] += y
			}
			h := norm(p+"ffn_norm", xs[t])
			gate, up := project(p+"ffn_gate", h), project(p+"ffn_up", h)
			for i, g := range gate {
				gate[i] = g / (1 + math.Exp(-g)) * up[i]
			}
			for i, y := range project(p+"ffn_down", gate) {
				xs[t][i] += y
			}
		}
	}
	head := "output"
	if m.w["output.weight"] == nil {
		head = "token_embd"
	}
	var out [][]float64
	for _, x := range xs {
		out = append(out, project(head, norm("output_norm", x)))
	}
	return out
}
