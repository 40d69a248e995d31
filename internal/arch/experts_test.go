package arch_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A mixture is a model of two layers with four experts of width 32, two of which each token uses,
// by GGUF's short names. Each expert has its own numbered tensors.
type mixture map[string]*tensor.Tensor

const (
	mixtureHidden = 64
	mixtureFFN    = 32
)

func newMixture(names map[string][]int) mixture {
	rng, m := rand.New(rand.NewPCG(8, 9)), mixture{}
	all := joined(map[string][]int{
		"token_embd.weight": {40, 64}, "output_norm.weight": {64}, "output.weight": {40, 64},
		"blk.#.attn_norm.weight": {64}, "blk.#.ffn_norm.weight": {64},
		"blk.#.attn_q.weight": {64, 64}, "blk.#.attn_k.weight": {32, 64}, "blk.#.attn_v.weight": {32, 64}, "blk.#.attn_output.weight": {64, 64},
		"blk.#.ffn_gate_inp.weight": {4, 64},
		"blk.#.ffn_gate.@.weight":   {32, 64}, "blk.#.ffn_up.@.weight": {32, 64}, "blk.#.ffn_down.@.weight": {64, 32},
	}, names)
	all = expand(expand(all, "#", tinyLayers), "@", tinyExperts)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m[name] = plantest.Weight(rng, name, tensor.F32, 0.3, all[name]...)
	}
	return m
}

// join concatenates tensors.
func join(shape []int, parts ...*tensor.Tensor) *tensor.Tensor {
	w := &tensor.Tensor{DType: parts[0].DType, Shape: shape}
	for _, p := range parts {
		w.Data = append(w.Data, p.Data...)
	}
	return w
}

// stack puts the weights or biases of a kind of all experts into one tensor.
func (m mixture) stack(kind, suffix string) mixture {
	for i := range tinyLayers {
		var parts []*tensor.Tensor
		for e := range tinyExperts {
			name := fmt.Sprintf("blk.%d.%s.%d.%s", i, kind, e, suffix)
			if m[name] == nil {
				return m
			}
			parts = append(parts, m[name])
			delete(m, name)
		}
		m[fmt.Sprintf("blk.%d.%s_exps.%s", i, kind, suffix)] = join(append([]int{tinyExperts}, parts[0].Shape...), parts...)
	}
	return m
}

// fuse replaces the gate and up of each expert by f(gate, up), for weights and biases.
func (m mixture) fuse(f func(gate, up *tensor.Tensor) *tensor.Tensor) mixture {
	for name, gate := range maps.Clone(m) {
		if strings.Contains(name, ".ffn_gate.") {
			other := strings.Replace(name, "ffn_gate", "ffn_up", 1)
			m[strings.Replace(name, "ffn_gate", "ffn_gate_up", 1)] = f(gate, m[other])
			delete(m, name)
			delete(m, other)
		}
	}
	return m
}

// oneAfterTheOther returns all rows of gate, then all of up.
func oneAfterTheOther(gate, up *tensor.Tensor) *tensor.Tensor {
	shape := slices.Clone(gate.Shape)
	shape[0] *= 2
	return join(shape, gate, up)
}

// rowByRow returns alternate rows of gate and up.
func rowByRow(gate, up *tensor.Tensor) *tensor.Tensor {
	w := oneAfterTheOther(gate, up)
	size := len(gate.Data) / gate.Shape[0]
	w.Data = nil
	for r := range gate.Shape[0] {
		w.Data = append(append(w.Data, gate.Data[r*size:(r+1)*size]...), up.Data[r*size:(r+1)*size]...)
	}
	return w
}

// turn transposes float32 weights of a kind.
func (m mixture) turn(kind string) mixture {
	for name, w := range m {
		if strings.Contains(name, "."+kind+".") && len(w.Shape) == 2 {
			v := &tensor.Tensor{DType: w.DType, Shape: []int{w.Shape[1], w.Shape[0]}}
			for c := range w.Shape[1] {
				for r := range w.Shape[0] {
					v.Data = append(v.Data, w.Data[(r*w.Shape[1]+c)*4:][:4]...)
				}
			}
			m[name] = v
		}
	}
	return m
}

// write writes the model; pairs are replacements that turn GGUF's names into a checkpoint's.
func (m mixture) write(t *testing.T, config map[string]any, pairs ...string) string {
	t.Helper()
	var list []*tensor.Tensor
	rename := strings.NewReplacer(pairs...)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w := *m[name]
		w.Name = rename.Replace(name)
		list = append(list, &w)
	}
	return writeModel(t, config, list, pairs == nil)
}

var mixtureIDs = []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}

func (m mixture) logits(t *testing.T, config map[string]any, pairs ...string) [][]float32 {
	t.Helper()
	built, err := buildFile(t, m.write(t, config, pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return logitsOf(t, cpu.New(2), built.Program, mixtureIDs, plan.Limits{Cache: tensor.F32})
}

func logitsOf(t *testing.T, b plan.Backend, p *plan.Program, ids []int32, limits plan.Limits) [][]float32 {
	t.Helper()
	r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, 64, 1, max(128, len(ids)), 16, limits))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	s := r.Add(ids, 64)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	return s.Logits
}

func same(t *testing.T, name string, got, want [][]float32) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s: the logits of token %d differ", name, i)
			return
		}
	}
}

// hubMixture maps parts of GGUF's names to those of checkpoints.
var hubMixture = []string{
	"blk.", "model.layers.", "token_embd", "model.embed_tokens", "output_norm", "model.norm", "output.weight", "lm_head.weight",
	"attn_q_norm", "self_attn.q_norm", "attn_k_norm", "self_attn.k_norm", "attn_norm", "input_layernorm", "ffn_norm", "post_attention_layernorm",
	"attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj", "attn_v", "self_attn.v_proj", "attn_output.bias", "self_attn.o_proj.bias", "attn_output.weight", "self_attn.o_proj.weight",
	"attn_sinks.weight", "self_attn.sinks", "ffn_gate_inp.weight", "mlp.gate.weight",
	"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj", "ffn_down_exps.weight", "mlp.experts.down_proj",
	"ffn_gate.", "mlp.experts.gate_proj.", "ffn_up.", "mlp.experts.up_proj.", "ffn_down.", "mlp.experts.down_proj.",
	"ffn_gate_up_exps.bias", "mlp.experts.gate_up_proj_bias", "ffn_down_exps.bias", "mlp.experts.down_proj_bias",
}

// numbered returns the names for checkpoints with a tensor per expert: the number comes before the
// kind.
func numbered(pairs []string) []string {
	var all []string
	for e := range tinyExperts {
		for _, kind := range []string{"gate", "up", "down"} {
			all = append(all, fmt.Sprintf("ffn_%s.%d.", kind, e), fmt.Sprintf("mlp.experts.%d.%s_proj.", e, kind))
		}
	}
	return append(all, pairs...)
}

var (
	ggufQwen3MoE = map[string]any{
		"general.architecture": "qwen3moe", "block_count": 2, "embedding_length": mixtureHidden, "feed_forward_length": 48, "context_length": 64,
		"attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 16, "attention.value_length": 16,
		"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1000.0,
		"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": mixtureFFN,
	}
	hubQwen3MoE = map[string]any{
		"architectures": []string{"Qwen3MoeForCausalLM"}, "num_hidden_layers": 2, "hidden_size": mixtureHidden, "intermediate_size": 48, "max_position_embeddings": 64,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rope_theta": 1000.0, "rms_norm_eps": float64(float32(1e-5)),
		"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": mixtureFFN, "norm_topk_prob": true,
	}
	qwen3Norms = map[string][]int{"blk.#.attn_q_norm.weight": {16}, "blk.#.attn_k_norm.weight": {16}}
)

// All layouts of experts are the same model.
func TestExpertLayouts(t *testing.T) {
	make := func() mixture { return newMixture(qwen3Norms) }
	want := make().stack("ffn_gate", "weight").stack("ffn_up", "weight").stack("ffn_down", "weight").logits(t, ggufQwen3MoE)
	same(t, "GGUF, a tensor for each expert", make().logits(t, ggufQwen3MoE), want)
	same(t, "GGUF, gate and up in one", make().fuse(oneAfterTheOther).stack("ffn_gate_up", "weight").stack("ffn_down", "weight").logits(t, ggufQwen3MoE), want)
	same(t, "checkpoint, a tensor for each expert", make().logits(t, hubQwen3MoE, numbered(hubMixture)...), want)
	same(t, "checkpoint, gate and up in one", make().fuse(oneAfterTheOther).stack("ffn_gate_up", "weight").stack("ffn_down", "weight").logits(t, hubQwen3MoE, hubMixture...), want)
}

// with returns the configuration with another value.
func with(config map[string]any, key string, value any) map[string]any {
	config = maps.Clone(config)
	config[key] = value
	return config
}

var (
	ggufGPTOSS = joined(ggufQwen3MoE, map[string]any{
		"general.architecture": "gpt-oss", "attention.sliding_window": 4,
		"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16,
	})
	hubGPTOSS = joined(hubQwen3MoE, map[string]any{
		"architectures": []string{"GptOssForCausalLM"}, "num_local_experts": 4, "intermediate_size": mixtureFFN, "sliding_window": 4,
		"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "truncate": false},
	})
	gptOSSBiases = map[string][]int{
		"blk.#.attn_q.bias": {64}, "blk.#.attn_k.bias": {32}, "blk.#.attn_v.bias": {32}, "blk.#.attn_output.bias": {64}, "blk.#.attn_sinks.weight": {4},
		"blk.#.ffn_gate_inp.bias": {4}, "blk.#.ffn_gate.@.bias": {32}, "blk.#.ffn_up.@.bias": {32}, "blk.#.ffn_down.@.bias": {64},
	}
	hubGPTOSSNames = append([]string{"ffn_gate_inp", "mlp.router"}, hubMixture...)
)

// joined returns the union of configurations or shapes.
func joined[V any](a, b map[string]V) map[string]V {
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

// ggufGPTOSSFile returns the model with GGUF's layout.
func ggufGPTOSSFile(m mixture) mixture {
	for _, kind := range []string{"ffn_gate", "ffn_up", "ffn_down"} {
		m.stack(kind, "weight").stack(kind, "bias")
	}
	for i := range tinyLayers {
		norm := fmt.Sprintf("blk.%d.ffn_norm.weight", i)
		m[fmt.Sprintf("blk.%d.post_attention_norm.weight", i)] = m[norm]
		delete(m, norm)
	}
	return m
}

// Both layouts of gpt-oss's checkpoints, and GGUF's, are the same model.
func TestGPTOSSLayouts(t *testing.T) {
	make := func() mixture { return newMixture(gptOSSBiases) }
	fused := func(m mixture) mixture {
		m.fuse(rowByRow)
		for _, kind := range []string{"ffn_gate_up", "ffn_down"} {
			m.turn(kind).stack(kind, "weight").stack(kind, "bias")
		}
		return m
	}
	same(t, "transposed", fused(make()).logits(t, hubGPTOSS, hubGPTOSSNames...), ggufGPTOSSFile(make()).logits(t, ggufGPTOSS))

	// In MXFP4, blocks and scales equal the values that they stand for, and GGUF's blocks.
	l := modeltest.LayoutOf(t, "mxfp4")
	packed, plain := make().fuse(rowByRow), make().fuse(rowByRow)
	for name, w := range maps.Clone(packed) {
		if len(w.Shape) != 2 || !strings.Contains(name, ".ffn_down.") && !strings.Contains(name, ".ffn_gate_up.") {
			continue
		}
		values, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		parts, values := l.Store(name, w.Shape[0], w.Shape[1], values)
		base := strings.TrimSuffix(name, ".weight")
		packed[base+".blocks"], packed[base+".scales"] = parts[0], parts[1]
		delete(packed, name)
		plain[name] = floats(name, values, w.Shape...)
	}
	for _, kind := range []string{"ffn_gate_up", "ffn_down"} {
		packed.stack(kind, "blocks").stack(kind, "scales").stack(kind, "bias")
		plain.turn(kind).stack(kind, "weight").stack(kind, "bias")
	}
	want := plain.logits(t, hubGPTOSS, hubGPTOSSNames...)
	got := packed.logits(t, with(hubGPTOSS, "quantization_config", l.Config), append([]string{
		"ffn_gate_up_exps.blocks", "mlp.experts.gate_up_proj_blocks", "ffn_gate_up_exps.scales", "mlp.experts.gate_up_proj_scales",
		"ffn_down_exps.blocks", "mlp.experts.down_proj_blocks", "ffn_down_exps.scales", "mlp.experts.down_proj_scales",
	}, hubGPTOSSNames...)...)
	if d := relative(got, want); !(d < 1e-6) {
		t.Errorf("MXFP4 differs from the values it stands for by %.3g", d)
	}
}

// floats returns a tensor of those values.
func floats(name string, values []float32, shape ...int) *tensor.Tensor {
	w := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: shape, Data: make([]byte, 0, 4*len(values))}
	for _, v := range values {
		bits := math.Float32bits(v)
		w.Data = append(w.Data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return w
}

// A number that is not finite is found through every view of a tensor.
func TestExpertNotFinite(t *testing.T) {
	m := newMixture(gptOSSBiases).fuse(rowByRow)
	for _, kind := range []string{"ffn_gate_up", "ffn_down"} {
		m.turn(kind).stack(kind, "weight").stack(kind, "bias")
	}
	for _, name := range []string{"blk.1.ffn_gate_up_exps.weight", "blk.1.ffn_down_exps.weight", "blk.0.ffn_gate_up_exps.bias"} {
		whole := m[name]
		broken := *whole
		broken.Data = bytes.Clone(whole.Data)
		copy(broken.Data[4*(broken.Elems()-1):], []byte{0, 0, 0xc0, 0x7f})
		m[name] = &broken
		built, err := buildFile(t, m.write(t, hubGPTOSS, hubGPTOSSNames...))
		if err != nil {
			t.Fatal(err)
		}
		_, err = plantest.NewRunner(cpu.New(2), built.Program, plantest.LimitsFor(built.Program, 8, 1, 16, 16, plan.Limits{Cache: tensor.F32}))
		if err == nil || !strings.Contains(err.Error(), "NaN") {
			t.Errorf("%s: %v, want an error that says NaN", name, err)
		}
		m[name] = whole
	}
}

// Experts that do not match the configuration, and unknown kinds of routers, are errors with names
// and numbers.
func TestExpertErrors(t *testing.T) {
	stacked := func() mixture {
		return newMixture(qwen3Norms).stack("ffn_gate", "weight").stack("ffn_up", "weight").stack("ffn_down", "weight")
	}
	gguf := func(key string, value any) string { return stacked().write(t, with(ggufQwen3MoE, key, value)) }
	hub := func(key string, value any) string {
		return newMixture(qwen3Norms).write(t, with(hubQwen3MoE, key, value), numbered(hubMixture)...)
	}
	lacking := newMixture(qwen3Norms)
	delete(lacking, "blk.1.ffn_up.2.weight")
	misshapen := newMixture(qwen3Norms)
	misshapen["blk.0.ffn_down.3.weight"] = misshapen["blk.0.ffn_up.3.weight"]
	none := stacked()
	delete(none, "blk.0.ffn_up_exps.weight")
	for _, c := range []struct {
		name, path string
		is         error
		says       string
	}{
		{"an expert is missing", lacking.write(t, hubQwen3MoE, numbered(hubMixture)...), arch.ErrTensor, "model.layers.1.mlp.experts.2.up_proj.weight is missing"},
		{"an expert has another shape", misshapen.write(t, hubQwen3MoE, numbered(hubMixture)...), arch.ErrTensor, "experts.3.down_proj.weight has shape [32 64], want [64 32]"},
		{"all experts are missing", none.write(t, ggufQwen3MoE), arch.ErrTensor, "blk.0.ffn_up_exps.weight is missing"},
		{"more experts than the tensor has", gguf("expert_count", 5), arch.ErrTensor, "want 5 rows"},
		{"more experts than the configuration says", hub("num_experts", 3), arch.ErrTensor, "want 3 rows"},
		{"experts of another width", gguf("expert_feed_forward_length", 16), arch.ErrTensor, "blk.0.ffn_gate_exps.weight has shape [4 32 64], want [4 16 64]"},
		{"no number of experts", gguf("expert_count", 0), arch.ErrConfig, "expert_count is 0"},
		{"more experts for a token than there are", gguf("expert_used_count", 5), arch.ErrConfig, "5 experts for each token, of 4"},
		{"a router's kind that has no name", gguf("expert_gating_func", 5), arch.ErrConfig, "expert_gating_func is 5; the nearest known are 1 (softmax)"},
		{"an unknown kind of router", hub("scoring_func", "softmin"), arch.ErrConfig, `scoring_func is "softmin"; the nearest known are "softmax", "sigmoid"`},
		{"groups that do not divide the experts", hub("n_group", 3), arch.ErrConfig, "from 0 of 3 groups"},
		{"experts in an architecture without any", gguf("general.architecture", "qwen3"), arch.ErrConfig, "expert_count"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.path, c.is, c.says) })
	}
}
