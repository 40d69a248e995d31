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
}

// usualNames are the names that most converters give to the tensors of a layer.
var usualNames = map[string]string{
	"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.qkv_proj": "attn_qkv", "self_attn.o_proj": "attn_output",
	"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}

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
	glmNames = map[string]string{"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"}
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

// A checkpoint and its GGUF file compute the same.
func TestConvertedGGUF(t *testing.T) {
	for name, conv := range conversions {
		t.Run(name, func(t *testing.T) {
			name, _, _ := strings.Cut(name, ", ")
			dir := filepath.Join(conformance(t), "hf", name)
			if _, err := os.Stat(dir); err != nil {
				dir = filepath.Join(conformance(t), "hf-more", name)
			}
			m, err := buildFile(t, conv.write(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			agree(t, cpu.New(2), m, expected(t, filepath.Join(dir, "expected.safetensors")), inFloats.limits, inFloats.bound)
		})
	}
}

var layerName = regexp.MustCompile(`^(?:model\.layers\.(\d+)\.)?(.*?)(\.weight|\.bias|)$`)

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
	tensors := map[string]*tensor.Tensor{}
	for _, w := range f.Tensors() {
		part := layerName.FindStringSubmatch(w.Name)
		short, ok := conv.names[part[2]]
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
		w.Name = name
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
