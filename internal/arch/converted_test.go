package arch_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A conversion says how llama.cpp's converter turns a checkpoint into GGUF, for models without a
// GGUF file in the conformance data.
type conversion struct {
	arch     string
	config   map[string]any    // keys besides the common ones
	names    map[string]string // names of tensors that are not the usual ones
	plusOne  bool              // GGUF stores the weights of norms plus one
	permuted bool              // GGUF permutes the rows of queries and keys
	stacked  []string          // matrices of these names, numbered, are one tensor
	vectors  map[string][]float32
	change   func(t *testing.T, tensors map[string]*tensor.Tensor)
	lists    map[string]string // keys of lists by layer that a checkpoint has as tensors
}

// usualNames are the names that most converters give to the tensors of a layer.
var usualNames = map[string]string{
	"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output",
	"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
	"mlp.gate": "ffn_gate_inp", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
	"mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
}

// expertName matches an expert's projections, which some GGUF files have in one tensor each.
var (
	expertName    = regexp.MustCompile(`^(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(gate_proj|up_proj|down_proj|w[123])$`)
	expertTensors = map[string]string{"gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down", "w1": "ffn_gate", "w3": "ffn_up", "w2": "ffn_down"}
)

var (
	aroundNames = map[string]string{
		"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
	}
	gemma3nNames = combined(aroundNames, map[string]string{
		"model.embed_tokens_per_layer": "per_layer_token_embd", "model.per_layer_model_projection": "per_layer_model_proj",
		"model.per_layer_projection_norm": "per_layer_proj_norm", "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
		"model.altup_projections.0": "altup_proj.0", "model.altup_projections.1": "altup_proj.1",
		"model.altup_unembed_projections.0": "altup_unembd_proj.0", "model.altup_unembed_projections.1": "altup_unembd_proj.1",
		"altup.correct_output_scale": "altup_correct_scale.weight", "altup.correction_coefs": "altup_correct_coef", "altup.prediction_coefs": "altup_predict_coef",
		"altup.modality_router": "altup_router", "altup.router_norm": "altup_router_norm",
		"laurel.linear_left": "laurel_l", "laurel.linear_right": "laurel_r", "laurel.post_laurel_norm": "laurel_post_norm",
	})
	negInf      = float32(math.Inf(-1))
	gemma4Names = combined(aroundNames, map[string]string{
		"layer_scalar": "layer_output_scale.weight", "model.embed_tokens_per_layer": "per_layer_token_embd", "model.per_layer_model_projection": "per_layer_model_proj",
		"model.per_layer_projection_norm": "per_layer_proj_norm", "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
		"post_feedforward_layernorm_1": "post_ffw_norm_1", "post_feedforward_layernorm_2": "post_ffw_norm_2", "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
		"router.proj": "ffn_gate_inp", "router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
		"experts.gate_up_proj": "ffn_gate_up_exps.weight", "experts.down_proj": "ffn_down_exps.weight",
	})
	gemma4Keys = map[string]any{
		"attention.sliding_window": 8, "attention.key_length": 64, "attention.value_length": 64, "attention.key_length_swa": 32, "attention.value_length_swa": 32,
		"rope.dimension_count": 64, "rope.dimension_count_swa": 32, "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4,
	}
	lfm2Names = map[string]string{
		"model.embedding_norm": "token_embd_norm", "operator_norm": "attn_norm", "ffn_norm": "ffn_norm",
		"self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
		"conv.conv": "shortconv.conv", "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj",
		"feed_forward.w1": "ffn_gate", "feed_forward.w2": "ffn_down", "feed_forward.w3": "ffn_up",
	}
	trinityNames = map[string]string{
		"post_attention_layernorm": "post_attention_norm", "pre_mlp_layernorm": "ffn_norm", "post_mlp_layernorm": "post_ffw_norm",
		"self_attn.gate_proj": "attn_gate", "mlp.router.gate": "ffn_gate_inp", "mlp.expert_bias": "exp_probs_b.bias",
	}
	hunyuanNames = map[string]string{
		"mlp.gate.wg": "ffn_gate_inp", "mlp.router.gate": "ffn_gate_inp", "mlp.expert_bias": "exp_probs_b",
		"mlp.shared_mlp.gate_proj": "ffn_gate_shexp", "mlp.shared_mlp.up_proj": "ffn_up_shexp", "mlp.shared_mlp.down_proj": "ffn_down_shexp",
	}
	lagunaNames = map[string]string{
		"self_attn.g_proj": "attn_gate", "mlp.experts.e_score_correction_bias": "exp_probs_b.bias",
		"mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp", "mlp.shared_expert.down_proj": "ffn_down_shexp",
	}
	apertusNames = map[string]string{"attention_layernorm": "attn_norm", "feedforward_layernorm": "ffn_norm"}
	glmNames     = map[string]string{"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}
)

var conversions = map[string]conversion{
	"gemma2": {arch: "gemma2", names: aroundNames, plusOne: true, config: map[string]any{
		"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "attention.sliding_window": 8}},
	"gemma3": {arch: "gemma3", names: aroundNames, plusOne: true, config: map[string]any{"attention.sliding_window": 8, "rope.freq_base": 1e6}},
	"olmo2":  {arch: "olmo2", names: aroundNames},
	"olmo3": {arch: "olmo2", names: aroundNames, config: map[string]any{
		"attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false}, "rope.freq_base": 500000.0}},
	"cohere2": {arch: "cohere2", config: map[string]any{"attention.layer_norm_epsilon": 1e-5, "attention.sliding_window": 8, "logit_scale": 0.25}},
	"smollm3": {arch: "smollm3", permuted: true, config: map[string]any{"rope.freq_base": 2e6}},
	"glm4":    {arch: "glm4", names: glmNames, config: map[string]any{"rope.dimension_count": 16}},
	"exaone4": {arch: "exaone4", names: aroundNames, config: map[string]any{
		"attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false}}},
	"hunyuan": {arch: "hunyuan-dense"},
	"lfm2": {arch: "lfm2", names: lfm2Names, config: map[string]any{
		"attention.head_count_kv": []int32{0, 2, 0, 2}, "shortconv.l_cache": 3, "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e6}},
	"phi3": {arch: "phi3", config: map[string]any{"attention.sliding_window": 0, "rope.scaling.original_context_length": 4096}},
	"phi3-longrope": {arch: "phi3", config: map[string]any{"attention.sliding_window": 0, "rope.scaling.original_context_length": 16, "rope.scaling.attn_factor": math.Sqrt2},
		vectors: map[string][]float32{
			"rope_factors_short.weight": {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7}, "rope_factors_long.weight": {1.5, 1.8, 2.1, 2.4, 2.7, 3, 3.3, 3.6}}},
}

// proportional are the factors by which a quarter of the pairs of 64 elements are rotated.
var proportional = append(slices.Repeat([]float32{1}, 8), slices.Repeat([]float32{1e30}, 24)...)

// combined returns all entries of both maps.
func combined[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// withExperts returns the keys of a mixture beside others.
func withExperts(count, width int, more map[string]any) map[string]any {
	all := map[string]any{"expert_count": count, "expert_used_count": 2, "expert_feed_forward_length": width}
	maps.Copy(all, more)
	return all
}

// moreConversions are those of the models in hf-more.
var moreConversions = map[string]conversion{
	"afmoe": {arch: "afmoe", names: trinityNames, config: withExperts(4, 48, map[string]any{
		"expert_gating_func": 2, "expert_weights_norm": true, "expert_weights_scale": 1.5, "expert_shared_count": 1, "leading_dense_block_count": 1, "attention.sliding_window": 8})},
	"apertus": {arch: "apertus", names: apertusNames, config: map[string]any{"rope.freq_base": 12e6},
		lists:   map[string]string{"mlp.act_fn.alpha_p": "xielu.alpha_p", "mlp.act_fn.alpha_n": "xielu.alpha_n", "mlp.act_fn.beta": "xielu.beta", "mlp.act_fn.eps": "xielu.eps"},
		vectors: map[string][]float32{"rope_freqs.weight": llama3Divisors(12e6, 32)}},
	"arcee": {arch: "arcee", permuted: true},
	"cohere2-moe": {arch: "cohere2moe", config: withExperts(4, 96, map[string]any{
		"attention.layer_norm_epsilon": 1e-5, "expert_gating_func": 3, "expert_shared_count": 1, "logit_scale": 0.25,
		"attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false}})},
	"dots1": {arch: "dots1", config: withExperts(8, 48, map[string]any{
		"expert_gating_func": 2, "expert_weights_norm": false, "expert_weights_scale": 1.0, "expert_shared_count": 1, "leading_dense_block_count": 1})},
	"ernie4-5-moe": {arch: "ernie4_5-moe", names: map[string]string{"mlp.moe_statics.e_score_correction_bias": "exp_probs_b.bias"}, config: withExperts(4, 48, map[string]any{
		"expert_shared_count": 1, "expert_shared_feed_forward_length": 48, "leading_dense_block_count": 1, "interleave_moe_layer_step": 1, "rope.freq_base": 500000.0})},
	"exaone-moe": {arch: "exaone-moe", names: map[string]string{"mlp.e_score_correction_bias": "exp_probs_b.bias"}, config: withExperts(4, 48, map[string]any{
		"expert_gating_func": 2, "expert_weights_norm": true, "expert_weights_scale": 2.5, "expert_shared_count": 1, "leading_dense_block_count": 1,
		"attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false}})},
	"gemma3n": {arch: "gemma3n", names: gemma3nNames, stacked: []string{"altup_proj", "altup_unembd_proj"}, config: map[string]any{
		"feed_forward_length": 96, "attention.sliding_window": 8, "attention.sliding_window_pattern": []bool{true, true, true, false, true, true, true, false},
		"attention.shared_kv_layers": 3, "embedding_length_per_layer_input": 16, "altup.num_inputs": 3, "altup.active_idx": 0, "rope.freq_base": 1e6,
		"activation_sparsity_scale": []float32{1.6448536, 1.6448536, 1.6448536, negInf, negInf, negInf, negInf, negInf}}},
	"gemma4": {arch: "gemma4", names: gemma4Names, config: combined(gemma4Keys, map[string]any{
		"attention.shared_kv_layers": 3, "embedding_length_per_layer_input": 16, "final_logit_softcapping": 30.0,
		"attention.sliding_window_pattern": []bool{true, true, true, false, true, true, true, false}}), vectors: map[string][]float32{"rope_freqs.weight": proportional}},
	"gemma4-moe": {arch: "gemma4", names: gemma4Names, config: combined(gemma4Keys, map[string]any{
		"attention.shared_kv_layers": 0, "embedding_length_per_layer_input": 0, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 48,
		"attention.sliding_window_pattern": []bool{true, true, true, false}}), vectors: map[string][]float32{"rope_freqs.weight": proportional}},
	"hunyuan-moe": {arch: "hunyuan-moe", names: hunyuanNames, config: withExperts(4, 96, map[string]any{"expert_shared_count": 1, "expert_shared_feed_forward_length": 96})},
	"hy-v3": {arch: "hy_v3", names: hunyuanNames, config: withExperts(4, 48, map[string]any{
		"expert_gating_func": 2, "expert_weights_norm": true, "expert_weights_scale": 2.826, "expert_shared_feed_forward_length": 48, "rope.freq_base": 11158840.0})},
	"laguna": {arch: "laguna", names: lagunaNames, config: withExperts(4, 48, map[string]any{
		"expert_gating_func": 2, "expert_weights_norm": true, "expert_weights_scale": 1.0, "expert_shared_feed_forward_length": 48, "leading_dense_block_count": 1,
		"attention.head_count": []int32{4, 4, 4, 4}, "attention.sliding_window": 8, "rope.dimension_count": 16, "rope.dimension_count_swa": 32, "rope.freq_base": 500000.0, "rope.freq_base_swa": 10000.0})},
	"ministral3": {arch: "mistral3", permuted: true, config: map[string]any{
		"attention.temperature_scale": 0.1, "rope.freq_base": 1e6, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32,
		"rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0, "rope.scaling.yarn_log_multiplier": 1.0}},
	"olmoe":  {arch: "olmoe", config: withExperts(4, 96, nil)},
	"phimoe": {arch: "phimoe", names: map[string]string{"block_sparse_moe.gate": "ffn_gate_inp"}, config: withExperts(4, 96, map[string]any{"rope.freq_base": 1e6})},
}

// llama3Divisors returns what converters write for the frequencies of a head of dims elements, for a
// context of 8192 extended by 8, with factors of 1 and 4.
func llama3Divisors(base float64, dims int) []float32 {
	var all []float32
	for _, f := range powers(base, dims) {
		blend := min(max((8192*f/(2*math.Pi)-1)/3, 0), 1)
		all = append(all, float32(1/((1-blend)/8+blend)))
	}
	return all
}

// A checkpoint and its GGUF file compute the same.
func TestConvertedGGUF(t *testing.T) {
	for folder, all := range map[string]map[string]conversion{"hf": conversions, "hf-more": moreConversions} {
		dir := filepath.Join(conformance(t), folder)
		for name, conv := range all {
			t.Run(name, func(t *testing.T) {
				name, _, _ := strings.Cut(name, ", ")
				m, err := buildFile(t, conv.write(t, filepath.Join(dir, name)))
				if err != nil {
					t.Fatal(err)
				}
				if e := expected(t, filepath.Join(dir, name, "expected.safetensors")); chooses(m.Program) {
					agreeTied(t, m, e, backends(t))
				} else {
					agree(t, cpu.New(2), m, e, inFloats.limits, inFloats.bound)
				}
			})
		}
	}
}

var layerName = regexp.MustCompile(`^(?:model\.layers\.(\d+)\.)?(.*?)(\.weight|\.bias)?$`)

func (conv *conversion) write(t *testing.T, folder string) string {
	t.Helper()
	f, err := modelfile.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	number := func(key string) int {
		n, _ := f.Meta().Int(key)
		return int(n)
	}
	tensors, lists := map[string]*tensor.Tensor{}, map[string][]float32{}
	for _, w := range f.Tensors() {
		part := layerName.FindStringSubmatch(w.Name)
		if key := conv.lists[part[2]]; key != "" {
			values, err := w.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			lists[key] = append(lists[key], values...) // in the order of the layers
			continue
		}
		short, ok := conv.names[part[2]]
		if e := expertName.FindStringSubmatch(part[2]); e != nil {
			short, ok = expertTensors[e[2]]+"."+e[1], true
		}
		if !ok {
			short = usualNames[part[2]]
		}
		if short == "" {
			t.Fatalf("what is %s?", w.Name)
		}
		if part[1] != "" {
			short = "blk." + part[1] + "." + short
		}
		if len(w.Shape) == 3 && w.Shape[1] == 1 { // a convolution
			squeezed := *w
			squeezed.Shape, w = []int{w.Shape[0], w.Shape[2]}, &squeezed
		}
		if conv.plusOne && strings.HasSuffix(short, "_norm") {
			w = plusOne(t, w)
		}
		tensors[short+part[3]] = w
	}
	head := number("hidden_size") / number("num_attention_heads")
	if n := number("head_dim"); n > 0 {
		head = n
	}
	eps, _ := f.Meta().Float("rms_norm_eps")
	config := map[string]any{
		"general.architecture": conv.arch, "block_count": number("num_hidden_layers"), "embedding_length": number("hidden_size"), "context_length": number("max_position_embeddings"),
		"feed_forward_length": number("intermediate_size"), "attention.head_count": number("num_attention_heads"), "attention.head_count_kv": number("num_key_value_heads"),
		"attention.key_length": head, "attention.value_length": head, "attention.layer_norm_rms_epsilon": eps, "rope.freq_base": 10000.0,
	}
	maps.Copy(config, conv.config)
	for _, name := range conv.stacked {
		var all tensor.Tensor
		for i := 0; ; i++ {
			one := tensors[fmt.Sprintf("%s.%d.weight", name, i)]
			if one == nil {
				break
			}
			delete(tensors, fmt.Sprintf("%s.%d.weight", name, i))
			all = tensor.Tensor{DType: one.DType, Shape: []int{i + 1, one.Rows(), one.Cols()}, Data: append(all.Data, one.Data...)}
		}
		tensors[name+".weight"] = &all
	}
	for key, values := range lists {
		config[key] = values
	}
	for name, values := range conv.vectors {
		tensors[name] = floatVector(values)
	}
	if conv.change != nil {
		conv.change(t, tensors)
	}
	var list []*tensor.Tensor
	for name := range tensors {
		if conv.permuted && strings.Contains(name, "attn_q.") {
			permute(tensors, name, number("num_attention_heads"))
		}
		if conv.permuted && strings.Contains(name, "attn_k.") {
			permute(tensors, name, number("num_key_value_heads"))
		}
		w := *tensors[name]
		if w.Name = name; strings.Contains(name, "exp_probs_b") {
			w.Shape = []int{w.Elems()}
		}
		list = append(list, &w)
	}
	var data bytes.Buffer
	if err := modelfile.WriteGGUF(&data, ggufMeta(config), list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func plusOne(t *testing.T, w *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	values, err := w.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		values[i]++
	}
	return floatVector(values)
}

func floatVector(values []float32) *tensor.Tensor {
	w := &tensor.Tensor{DType: tensor.F32, Shape: []int{len(values)}}
	for _, v := range values {
		w.Data = binary.LittleEndian.AppendUint32(w.Data, math.Float32bits(v))
	}
	return w
}
