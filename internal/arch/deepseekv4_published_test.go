package arch_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// deepseekV4Published is a config.json with the keys of DeepSeek's, and deepseekV4Converted one with
// those of transformers, for the same model.
const (
	deepseekV4Published = `{"architectures": ["DeepseekV4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0, "compress_ratios": [128, 4, 0],
	"compress_rope_theta": 160000, "eos_token_id": 1, "expert_dtype": "fp4", "hc_eps": 1e-06, "hc_mult": 4, "hc_sinkhorn_iters": 20, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
	"index_head_dim": 16, "index_n_heads": 4, "index_topk": 4, "initializer_range": 0.02, "max_position_embeddings": 512, "model_type": "deepseek_v4", "moe_intermediate_size": 96,
	"n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hash_layers": 1, "num_hidden_layers": 2,
	"num_key_value_heads": 1, "num_nextn_predict_layers": 1, "o_groups": 2, "o_lora_rank": 32, "q_lora_rank": 32, "qk_rope_head_dim": 8, "rms_norm_eps": 1e-06,
	"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [32, 32]},
	"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 32, "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 1.5,
	"scoring_func": "sqrtsoftplus", "sliding_window": 16, "swiglu_limit": 10.0, "tie_word_embeddings": false, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
	"transformers_version": "4.57.1", "use_cache": true, "vocab_size": 320}`

	deepseekV4Converted = `{"architectures": ["DeepseekV4ForCausalLM"], "layer_types": ["heavily_compressed_attention", "compressed_sparse_attention"],
	"compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}, "mlp_layer_types": ["hash_moe", "moe"], "hc_eps": 1e-06, "hc_mult": 4, "hc_sinkhorn_iters": 20,
	"head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "index_head_dim": 16, "index_n_heads": 4, "index_topk": 4, "max_position_embeddings": 512, "moe_intermediate_size": 96,
	"n_routed_experts": 4, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 1, "o_groups": 2, "o_lora_rank": 32, "q_lora_rank": 32,
	"qk_rope_head_dim": 8, "rms_norm_eps": 1e-06, "routed_scaling_factor": 1.5, "scoring_func": "sqrtsoftplus", "sliding_window": 16, "swiglu_limit": 10.0, "vocab_size": 320,
	"rope_parameters": {"main": {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"}, "compress": {"partial_rotary_factor": 0.25, "rope_theta": 160000.0,
	  "rope_type": "yarn", "factor": 16.0, "attention_factor": 1.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 32}}}`
)

// deepseekV4GGUF are the keys that llama.cpp's converter writes for it.
var deepseekV4GGUF = map[string]any{
	"general.architecture": "deepseek4", "block_count": 2, "context_length": 512, "embedding_length": 64, "vocab_size": 320,
	"attention.head_count": 4, "attention.head_count_kv": 1, "attention.key_length": 32, "attention.value_length": 32, "attention.layer_norm_rms_epsilon": 1e-6,
	"attention.q_lora_rank": 32, "attention.output_lora_rank": 32, "attention.output_group_count": 2, "attention.sliding_window": 16,
	"attention.compress_ratios": []int32{128, 4, 0}, "attention.compress_rope_freq_base": 160000.0,
	"attention.indexer.head_count": 4, "attention.indexer.key_length": 16, "attention.indexer.top_k": 4,
	"rope.freq_base": 10000.0, "rope.dimension_count": 8, "rope.scaling.type": "yarn", "rope.scaling.factor": 16.0, "rope.scaling.original_context_length": 32,
	"rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0,
	"hyper_connection.count": 4, "hyper_connection.sinkhorn_iterations": 20, "hyper_connection.epsilon": 1e-6, "hash_layer_count": 1,
	"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 96, "expert_shared_count": 1, "expert_gating_func": 4, "expert_weights_norm": true,
	"expert_weights_scale": 1.5, "swiglu_clamp_exp": []float32{10, 10}, "nextn_predict_layers": 1,
}

// deepseekV4Tensors are the tensors by DeepSeek's names.
var deepseekV4Tensors = map[string]struct {
	gguf  string
	shape []int
}{
	"embed.weight":  {"token_embd.weight", []int{320, 64}},
	"head.weight":   {"output.weight", []int{320, 64}},
	"norm.weight":   {"output_norm.weight", []int{64}},
	"hc_head_fn":    {"output_hc_fn.weight", []int{4, 256}},
	"hc_head_base":  {"output_hc_base.weight", []int{4}},
	"hc_head_scale": {"output_hc_scale.weight", []int{1}},

	"layers.#.hc_attn_fn":       {"blk.#.hc_attn_fn.weight", []int{24, 256}},
	"layers.#.hc_attn_base":     {"blk.#.hc_attn_base.weight", []int{24}},
	"layers.#.hc_attn_scale":    {"blk.#.hc_attn_scale.weight", []int{3}},
	"layers.#.hc_ffn_fn":        {"blk.#.hc_ffn_fn.weight", []int{24, 256}},
	"layers.#.hc_ffn_base":      {"blk.#.hc_ffn_base.weight", []int{24}},
	"layers.#.hc_ffn_scale":     {"blk.#.hc_ffn_scale.weight", []int{3}},
	"layers.#.attn_norm.weight": {"blk.#.attn_norm.weight", []int{64}},
	"layers.#.ffn_norm.weight":  {"blk.#.ffn_norm.weight", []int{64}},

	"layers.#.attn.wq_a.weight":    {"blk.#.attn_q_a.weight", []int{32, 64}},
	"layers.#.attn.wq_b.weight":    {"blk.#.attn_q_b.weight", []int{128, 32}},
	"layers.#.attn.q_norm.weight":  {"blk.#.attn_q_a_norm.weight", []int{32}},
	"layers.#.attn.wkv.weight":     {"blk.#.attn_kv.weight", []int{32, 64}},
	"layers.#.attn.kv_norm.weight": {"blk.#.attn_kv_a_norm.weight", []int{32}},
	"layers.#.attn.attn_sink":      {"blk.#.attn_sinks.weight", []int{4}},
	"layers.#.attn.wo_a.weight":    {"blk.#.attn_output_a.weight", []int{64, 64}},
	"layers.#.attn.wo_b.weight":    {"blk.#.attn_output_b.weight", []int{64, 64}},

	"layers.#.attn.compressor.norm.weight":  {"blk.#.attn_compressor_norm.weight", []int{32}},
	"layers.0.attn.compressor.ape":          {"blk.0.attn_compressor_ape.weight", []int{128, 32}},
	"layers.0.attn.compressor.wkv.weight":   {"blk.0.attn_compressor_kv.weight", []int{32, 64}},
	"layers.0.attn.compressor.wgate.weight": {"blk.0.attn_compressor_gate.weight", []int{32, 64}},
	"layers.1.attn.compressor.ape":          {"blk.1.attn_compressor_ape.weight", []int{4, 64}},
	"layers.1.attn.compressor.wkv.weight":   {"blk.1.attn_compressor_kv.weight", []int{64, 64}},
	"layers.1.attn.compressor.wgate.weight": {"blk.1.attn_compressor_gate.weight", []int{64, 64}},

	"layers.1.attn.indexer.wq_b.weight":             {"blk.1.indexer.attn_q_b.weight", []int{64, 32}},
	"layers.1.attn.indexer.weights_proj.weight":     {"blk.1.indexer.proj.weight", []int{4, 64}},
	"layers.1.attn.indexer.compressor.ape":          {"blk.1.indexer_compressor_ape.weight", []int{4, 32}},
	"layers.1.attn.indexer.compressor.norm.weight":  {"blk.1.indexer_compressor_norm.weight", []int{16}},
	"layers.1.attn.indexer.compressor.wkv.weight":   {"blk.1.indexer_compressor_kv.weight", []int{32, 64}},
	"layers.1.attn.indexer.compressor.wgate.weight": {"blk.1.indexer_compressor_gate.weight", []int{32, 64}},

	"layers.#.ffn.gate.weight":              {"blk.#.ffn_gate_inp.weight", []int{4, 64}},
	"layers.0.ffn.gate.tid2eid":             {"blk.0.ffn_gate_tid2eid.weight", []int{320, 2}},
	"layers.1.ffn.gate.bias":                {"blk.1.exp_probs_b.bias", []int{4}},
	"layers.#.ffn.experts.@.w1.weight":      {"blk.#.ffn_gate_exps.weight", []int{96, 64}},
	"layers.#.ffn.experts.@.w2.weight":      {"blk.#.ffn_down_exps.weight", []int{64, 96}},
	"layers.#.ffn.experts.@.w3.weight":      {"blk.#.ffn_up_exps.weight", []int{96, 64}},
	"layers.#.ffn.shared_experts.w1.weight": {"blk.#.ffn_gate_shexp.weight", []int{96, 64}},
	"layers.#.ffn.shared_experts.w2.weight": {"blk.#.ffn_down_shexp.weight", []int{64, 96}},
	"layers.#.ffn.shared_experts.w3.weight": {"blk.#.ffn_up_shexp.weight", []int{96, 64}},
}

// A DeepSeek-V4 checkpoint as DeepSeek publishes it, with numbers in FP8 and experts in FP4, and a GGUF
// file as llama.cpp's converter writes it, with experts in MXFP4, compute what the same numbers in
// float32 by the names of transformers do.
func TestDeepSeekV4Published(t *testing.T) {
	eights, fours := modeltest.LayoutOf(t, "fp8 e8m0"), modeltest.LayoutOf(t, "fp4")
	inFP8 := regexp.MustCompile(`attn\.w|indexer\.wq_b|shared_experts`)
	byTransformers := strings.NewReplacer(".kv_norm", ".norm", "embed", "embed_tokens", "hc_head_", "hc_head.hc_")
	table := expand(expand(deepseekV4Tensors, "#", tinyLayers), "@", tinyExperts)
	rng := rand.New(rand.NewPCG(7, 8))
	var plain, published, converted []*tensor.Tensor
	stacks := map[string]*tensor.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		shape, layer := table[name].shape, ""
		if rest, ok := strings.CutPrefix(name, "layers."); ok {
			layer, _, _ = strings.Cut(rest, ".")
		}
		gguf := strings.ReplaceAll(table[name].gguf, "#", layer)
		values, err := plantest.Weight(rng, name, tensor.F32, 0.3, shape...).Float32s()
		if err != nil {
			t.Fatal(err)
		}
		parts := []*tensor.Tensor{of(name, shape, floatVector(values))}
		inGGUF := of(gguf, shape, floatVector(values))
		switch {
		case strings.HasSuffix(name, "tid2eid"):
			for i := range values {
				values[i] = float32(rng.IntN(tinyExperts))
			}
			parts[0] = of(name, shape, &tensor.Tensor{DType: tensor.I64, Data: integers(values, 8)})
			inGGUF = of(gguf, shape, &tensor.Tensor{DType: tensor.I32, Data: integers(values, 4)})
		case strings.Contains(name, ".experts."):
			parts, values = fours.Store(name, shape[0], shape[1], values)
			all := stacks[gguf]
			if inGGUF = nil; all == nil {
				all = &tensor.Tensor{Name: gguf, DType: tensor.MXFP4, Shape: []int{tinyExperts, shape[0], shape[1]}}
				stacks[gguf], inGGUF = all, all
			}
			all.Data = append(all.Data, derivedRows(t, fours.Config, parts)...)
		case inFP8.MatchString(name):
			parts, values = eights.Store(name, shape[0], shape[1], values)
			inGGUF = of(gguf, shape, floatVector(values))
		}
		published = append(published, parts...)
		if inGGUF != nil {
			converted = append(converted, inGGUF)
		}
		prefix := "model."
		if name == "head.weight" {
			prefix = ""
		}
		plain = append(plain, of(prefix+byTransformers.Replace(name), shape, floatVector(values)))
	}
	further := floatVector(make([]float32, 64*64))
	published = append(published, of("mtp.0.e_proj.weight", []int{64, 64}, further))

	ids := make([]int32, 150)
	for i := range ids {
		ids[i] = int32(i * i % 311)
	}
	logits := func(path string) ([][]float32, *plan.Program) {
		m, err := buildFile(t, path)
		if err != nil {
			t.Fatal(err)
		}
		return logitsOf(t, cpu.New(2), m.Program, ids, plan.Limits{Cache: tensor.F32}), m.Program
	}
	want, _ := logits(writeModel(t, object(t, deepseekV4Converted), plain, false))
	for name, path := range map[string]string{
		"DeepSeek's": writeModel(t, object(t, deepseekV4Published), published, false), "GGUF": writeModel(t, deepseekV4GGUF, converted, true),
	} {
		got, p := logits(path)
		if d := relative(got, want); !(d < 1e-6) {
			t.Errorf("%s: relative error %.3g", name, d)
		}
		formats := map[tensor.DType]int{}
		for _, w := range p.Weights() {
			formats[w.DType]++
		}
		if formats[tensor.MXFP4] != tinyLayers*tinyExperts*3 || name != "GGUF" && formats[tensor.F8_E4M3_32] < tinyLayers*8 {
			t.Errorf("%s: weights in %v", name, formats)
		}
	}

	counted := maps.Clone(deepseekV4GGUF)
	counted["block_count"] = 3
	last := "blk." + strconv.Itoa(tinyLayers) + "."
	converted = append(converted, of(last+"nextn.eh_proj.weight", []int{64, 64}, further), of(last+"attn_norm.weight", []int{64}, floatVector(make([]float32, 64))))
	if m, err := buildFile(t, writeModel(t, counted, converted, true)); err != nil || m.Spec.Layers != tinyLayers {
		t.Errorf("a file that counts the layer that predicts further tokens: %v", err)
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// of returns a tensor with another name and shape.
func of(name string, shape []int, t *tensor.Tensor) *tensor.Tensor {
	t.Name, t.Shape = name, shape
	return t
}

// integers returns values as integers of size bytes.
func integers(values []float32, size int) []byte {
	var data []byte
	for _, v := range values {
		data = append(data, binary.LittleEndian.AppendUint64(nil, uint64(v))[:size]...)
	}
	return data
}

// derivedRows returns the rows of the weight that parts of a checkpoint become.
func derivedRows(t *testing.T, quantization map[string]any, parts []*tensor.Tensor) []byte {
	t.Helper()
	f, err := modelfile.Open(writeModel(t, map[string]any{"quantization_config": quantization}, parts, false))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	w := f.Tensors()[0]
	rows := make([]byte, w.Rows()*w.RowBytes())
	if err := w.ReadRows(rows, 0, w.Rows()); err != nil {
		t.Fatal(err)
	}
	return rows
}
