package arch_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// mimoV2Published is a config.json with the keys of MiMo-V2.5's.
const mimoV2Published = `{"architectures": ["MiMoV2ForCausalLM"], "model_type": "mimo_v2", "attention_bias": false, "attention_chunk_size": 8, "attention_dropout": 0.0,
	"attention_value_scale": 0.707, "attention_projection_layout": "fused_qkv", "add_full_attention_sink_bias": false, "add_swa_attention_sink_bias": true,
	"audio_config": {"audio_channels": 20}, "dtype": "bfloat16", "head_dim": 24, "hidden_act": "silu", "hidden_size": 64, "hybrid_block_size": null, "hybrid_layer_pattern": [0, 1],
	"intermediate_size": 96, "layernorm_epsilon": 1e-05, "max_position_embeddings": 512, "moe_intermediate_size": 32, "moe_layer_freq": [0, 1], "n_group": 1, "n_routed_experts": 4,
	"n_shared_experts": null, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "partial_rotary_factor": 0.334,
	"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "ignored_layers": ["model.layers.0.self_attn.o_proj"], "quant_method": "fp8", "store_dtype": "mxfp4",
	  "mxfp4_block_size": 32, "weight_block_size": [32, 32]},
	"rope_scaling": {"rope_type": "default", "type": "default"}, "rope_theta": 10000000, "routed_scaling_factor": null, "scoring_func": "sigmoid", "sliding_window": 8,
	"sliding_window_size": 8, "swa_head_dim": 24, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_rope_theta": 10000, "swa_v_head_dim": 16, "tie_word_embeddings": false,
	"topk_group": 1, "topk_method": "noaux_tc", "use_cache": true, "v_head_dim": 16, "vision_config": {"depth": 28}, "vocab_size": 320}`

// mimoV2GGUF are the keys that llama.cpp's converter writes for it, with a layer that predicts further
// tokens.
var mimoV2GGUF = map[string]any{
	"general.architecture": "mimo2", "block_count": 3, "context_length": 512, "embedding_length": 64, "feed_forward_length": 96, "vocab_size": 320,
	"attention.head_count": 4, "attention.head_count_kv": []int32{2, 4, 4}, "attention.key_length": 24, "attention.value_length": 16, "attention.layer_norm_rms_epsilon": 1e-5,
	"attention.sliding_window": 8, "attention.sliding_window_pattern": []int32{0, 1, 1}, "attention.value_scale": 0.707, "rope.dimension_count": 8, "rope.freq_base": 1e7,
	"rope.freq_base_swa": 1e4, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32, "expert_gating_func": 2, "nextn_predict_layers": 1,
}

// A checkpoint of MiMo-V2.5 and V2.6 as Xiaomi publishes it, with fused queries, keys and values in
// shards whose blocks of FP8 begin anew, experts in FP4, towers and further heads, and a GGUF file as
// llama.cpp's converter writes it, compute what MiMo-V2-Flash's names with the same numbers do.
func TestMiMoV2Published(t *testing.T) {
	const shards, dim, value, hidden, vocab = 2, 24, 16, 64, 320
	eights, fours := modeltest.LayoutOf(t, "fp8 e8m0"), modeltest.LayoutOf(t, "fp4 bytes")
	rng := rand.New(rand.NewPCG(9, 10))
	var plain, published, converted []*tensor.Tensor
	random := func(shape ...int) []float32 {
		v, err := plantest.Weight(rng, "", tensor.F32, 0.3, shape...).Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	both := func(name, gguf string, shape ...int) {
		v := random(shape...)
		plain, published = append(plain, of(name, shape, floatVector(v))), append(published, of(name, shape, floatVector(v)))
		converted = append(converted, of(gguf, shape, floatVector(v)))
	}
	both("model.embed_tokens.weight", "token_embd.weight", vocab, hidden)
	both("lm_head.weight", "output.weight", vocab, hidden)
	both("model.norm.weight", "output_norm.weight", hidden)
	for i, kvHeads := range []int{2, 4} {
		layer, blk := []string{"model.layers.0.", "model.layers.1."}[i], []string{"blk.0.", "blk.1."}[i]
		both(layer+"input_layernorm.weight", blk+"attn_norm.weight", hidden)
		both(layer+"post_attention_layernorm.weight", blk+"ffn_norm.weight", hidden)
		both(layer+"self_attn.o_proj.weight", blk+"attn_output.weight", hidden, 4*value)

		// The shards of a layer are each in FP8 on their own, with scales of blocks of 32 rows.
		codes := &tensor.Tensor{Name: layer + "self_attn.qkv_proj.weight", DType: tensor.F8_E4M3, Shape: []int{0, hidden}}
		scales := &tensor.Tensor{Name: codes.Name + "_scale_inv", DType: tensor.F8_E8M0, Shape: []int{0, hidden / 32}}
		sizes := []int{4 / shards * dim, kvHeads / shards * dim, kvHeads / shards * value}
		rows := sizes[0] + sizes[1] + sizes[2]
		var parts [3][]float32
		for range shards {
			stored, v := eights.Store("x.weight", rows, hidden, random(rows, hidden))
			codes.Data, scales.Data = append(codes.Data, stored[0].Data...), append(scales.Data, stored[1].Data...)
			codes.Shape[0], scales.Shape[0] = codes.Shape[0]+rows, scales.Shape[0]+stored[1].Shape[0]
			for p, size := range sizes {
				parts[p], v = append(parts[p], v[:size*hidden]...), v[size*hidden:]
			}
		}
		published = append(published, codes, scales)
		converted = append(converted, of(blk+"attn_qkv.weight", []int{shards * rows, hidden}, floatVector(slices.Concat(parts[:]...))))
		for p, name := range []string{"q_proj", "k_proj", "v_proj"} {
			plain = append(plain, of(layer+"self_attn."+name+".weight", []int{shards * sizes[p], hidden}, floatVector(parts[p])))
		}
	}
	for _, name := range []string{"gate", "up", "down"} {
		dense, shape := []int{96, hidden}, []int{32, hidden}
		if name == "down" {
			slices.Reverse(dense)
			slices.Reverse(shape)
		}
		both("model.layers.0.mlp."+name+"_proj.weight", "blk.0.ffn_"+name+".weight", dense...)
		all := &tensor.Tensor{Name: "blk.1.ffn_" + name + "_exps.weight", DType: tensor.MXFP4, Shape: append([]int{4}, shape...)}
		for _, expert := range []string{"0", "1", "2", "3"} {
			full := "model.layers.1.mlp.experts." + expert + "." + name + "_proj.weight"
			parts, v := fours.Store(full, shape[0], shape[1], random(shape...))
			plain, published = append(plain, of(full, shape, floatVector(v))), append(published, parts...)
			all.Data = append(all.Data, derivedRows(t, fours.Config, parts)...)
		}
		converted = append(converted, all)
	}
	both("model.layers.1.mlp.gate.weight", "blk.1.ffn_gate_inp.weight", 4, hidden)
	both("model.layers.1.mlp.gate.e_score_correction_bias", "blk.1.exp_probs_b.bias", 4)
	both("model.layers.1.self_attn.attention_sink_bias", "blk.1.attn_sinks.weight", 4)
	for _, name := range []string{"visual.patch_embed.proj.weight", "audio_encoder.projection.mlp.0.weight", "speech_embeddings.0.weight", "model.mtp.layers.0.eh_proj.weight"} {
		published = append(published, of(name, []int{8, 8}, floatVector(make([]float32, 64))))
	}
	converted = append(converted, of("blk.2.nextn.eh_proj.weight", []int{hidden, 2 * hidden}, floatVector(make([]float32, 2*hidden*hidden))))

	own := object(t, mimoV2Published)
	flash := maps.Clone(own)
	for key := range flash {
		if key == "quantization_config" || strings.HasSuffix(key, "_layout") || key == "vision_config" || key == "audio_config" {
			delete(flash, key)
		}
	}
	flash["architectures"], flash["model_type"] = []string{"MiMoV2FlashForCausalLM"}, "mimo_v2_flash"
	ids := make([]int32, 40)
	for i := range ids {
		ids[i] = int32(i * i % 311)
	}
	logits := func(path string) [][]float32 {
		m, err := buildFile(t, path)
		if err != nil {
			t.Fatal(err)
		}
		return logitsOf(t, cpu.New(2), m.Program, ids, plan.Limits{Cache: tensor.F32})
	}
	want := logits(writeModel(t, flash, plain, false))
	for name, path := range map[string]string{"Xiaomi's": writeModel(t, own, published, false), "GGUF": writeModel(t, mimoV2GGUF, converted, true)} {
		if d := relative(logits(path), want); !(d < 1e-6) {
			t.Errorf("%s: relative error %.3g", name, d)
		}
	}
}
