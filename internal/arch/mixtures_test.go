package arch_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// What mixtures of four experts of 8 have in the place of a feed-forward layer.
var (
	ggufExperts = both(shapes("blk.#.ffn_", ".weight", map[string][]int{"gate": nil, "up": nil, "down": nil}),
		shapes("blk.#.ffn_", ".weight", map[string][]int{"gate_inp": {4, 16}, "gate_exps": {4, 8, 16}, "up_exps": {4, 8, 16}, "down_exps": {4, 16, 8}}))
	ggufShared = shapes("blk.#.ffn_", "_shexp.weight", map[string][]int{"gate": {8, 16}, "up": {8, 16}, "down": {16, 8}})
	hubDense   = shapes(ofLayer+"mlp.", "_proj.weight", map[string][]int{"gate": nil, "up": nil, "down": nil})
	hubExperts = both(both(hubDense, map[string][]int{ofLayer + "mlp.gate.weight": {4, 16}}),
		shapes(ofLayer+"mlp.experts.@.", "_proj.weight", map[string][]int{"gate": {8, 16}, "up": {8, 16}, "down": {16, 8}}))
	hubBlockSparse = both(hubDense, shapes(ofLayer+"block_sparse_moe.", ".weight", map[string][]int{
		"gate": {4, 16}, "experts.@.w1": {24, 16}, "experts.@.w3": {24, 16}, "experts.@.w2": {16, 24}}))
	hubGPTOSS8 = both(both(both(hubDense, hubQKVBias), shapes(ofLayer, "", map[string][]int{
		"self_attn.sinks": {4}, "self_attn.o_proj.bias": {16}, "mlp.router.weight": {4, 16}, "mlp.router.bias": {4}})),
		shapes(ofLayer+"mlp.experts.", "", map[string][]int{
			"gate_up_proj": {4, 16, 48}, "gate_up_proj_bias": {4, 48}, "down_proj": {4, 24, 16}, "down_proj_bias": {4, 16}}))
	ggufGPTOSS8 = both(both(both(ggufExperts, qkvBias), shapes("blk.#.", "", map[string][]int{
		"attn_sinks.weight": {4}, "attn_output.bias": {16}, "ffn_norm.weight": nil, "post_attention_norm.weight": {16}})),
		shapes("blk.#.ffn_", ".bias", map[string][]int{"gate_inp": {4}, "gate_exps": {4, 8}, "up_exps": {4, 8}, "down_exps": {4, 16}}))

	hubFour  = map[string]any{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
	ggufFour = map[string]any{"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 8}
	yarn     = map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "truncate": false}
)

// mixtureModels are the mixtures of experts, one for each kind of file.
func mixtureModels() map[string]tiny {
	return map[string]tiny{
		"mixtral":      dense("MixtralForCausalLM", false).with(map[string]any{"num_local_experts": 4, "sliding_window": 4}, hubBlockSparse),
		"mixtral-gguf": dense("llama", true).with(ggufFour, ggufExperts),
		"qwen2-moe": firstDense(dense("Qwen2MoeForCausalLM", false).with(hubFour, both(hubExperts, hubQKVBias)).with(
			map[string]any{"shared_expert_intermediate_size": 8, "decoder_sparse_step": 2}, map[string][]int{
				ofLayer + "mlp.shared_expert_gate.weight": {1, 16}, ofLayer + "mlp.shared_expert.gate_proj.weight": {8, 16},
				ofLayer + "mlp.shared_expert.up_proj.weight": {8, 16}, ofLayer + "mlp.shared_expert.down_proj.weight": {16, 8},
			})),
		"qwen2-moe-gguf": dense("qwen2moe", true).with(ggufFour, both(both(ggufExperts, ggufShared), qkvBias)).with(
			map[string]any{"expert_shared_feed_forward_length": 8}, map[string][]int{"blk.#.ffn_gate_inp_shexp.weight": {16}}),
		"qwen3-moe":      dense("Qwen3MoeForCausalLM", false).with(hubFour, both(hubExperts, hubHeadNorms)).with(map[string]any{"norm_topk_prob": true}, nil),
		"qwen3-moe-gguf": dense("qwen3moe", true).with(ggufFour, both(ggufExperts, headNorms)),
		"granite-moe": dense("GraniteMoeSharedForCausalLM", false).with(map[string]any{
			"num_local_experts": 4, "shared_intermediate_size": 8, "residual_multiplier": 0.25, "attention_multiplier": 0.0625}, both(hubDense, shapes(ofLayer, ".weight", map[string][]int{
			"block_sparse_moe.router.layer": {4, 16}, "block_sparse_moe.input_linear": {4, 48, 16}, "block_sparse_moe.output_linear": {4, 16, 24},
			"shared_mlp.input_linear": {16, 16}, "shared_mlp.output_linear": {16, 8}}))),
		"granite-moe-gguf": dense("granitemoe", true).with(ggufFour, both(ggufExperts, ggufShared)).with(
			map[string]any{"expert_shared_feed_forward_length": 8, "logit_scale": 8.0, "residual_scale": 0.25}, nil),
		"glm4-moe": firstDense(dense("Glm4MoeForCausalLM", false).with(map[string]any{
			"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "n_shared_experts": 1, "first_k_dense_replace": 1, "routed_scaling_factor": 2.5,
			"num_hidden_layers": 2, "num_nextn_predict_layers": 1, "attention_bias": true, "use_qk_norm": true,
			"n_group": 2, "topk_group": 1,
		}, both(both(both(hubExperts, hubQKVBias), hubHeadNorms), map[string][]int{
			ofLayer + "mlp.gate.e_score_correction_bias": {4}, ofLayer + "mlp.shared_experts.gate_proj.weight": {8, 16},
			ofLayer + "mlp.shared_experts.up_proj.weight": {8, 16}, ofLayer + "mlp.shared_experts.down_proj.weight": {16, 8},
			"model.layers.2.eh_proj.weight": {16, 32}, "model.layers.2.shared_head.head.weight": {32, 16},
		}))),
		"glm4-moe-gguf": dense("glm4moe", true).with(ggufFour, both(both(ggufExperts, ggufShared), shapes("blk.#.", "", map[string][]int{
			"exp_probs_b.bias": {4}, "ffn_norm.weight": nil, "post_attention_norm.weight": {16}}))).with(map[string]any{
			"expert_shared_count": 1, "expert_gating_func": 2, "expert_weights_norm": true, "expert_weights_scale": 2.5,
			"block_count": 3, "nextn_predict_layers": 1, "rope.dimension_count": 4,
		}, map[string][]int{"blk.2.nextn.eh_proj.weight": {16, 32}}),
		"minimax-m2": dense("MiniMaxM2ForCausalLM", false).with(map[string]any{"num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 4, "scoring_func": "sigmoid"},
			both(both(hubBlockSparse, hubWidthNorms), map[string][]int{ofLayer + "block_sparse_moe.e_score_correction_bias": {4}})),
		"minimax-m2-gguf": dense("minimax-m2", true).with(ggufFour, both(both(ggufExperts, ggufWidthNorms), map[string][]int{"blk.#.exp_probs_b.bias": {4}})).with(
			map[string]any{"expert_gating_func": 2, "rope.dimension_count": 4}, nil),
		"gpt-oss": dense("GptOssForCausalLM", false).with(map[string]any{
			"num_local_experts": 4, "experts_per_token": 2, "sliding_window": 4, "swiglu_limit": 7.0, "rope_scaling": yarn}, hubGPTOSS8),
		"gpt-oss-gguf": dense("gpt-oss", true).with(ggufFour, ggufGPTOSS8).with(map[string]any{
			"attention.sliding_window": 4, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}, nil),
	}
}

func TestMixturePrograms(t *testing.T) { tinyPrograms(t, mixtureModels()) }

// firstDense is a checkpoint whose first layer has a feed-forward layer in the place of
// its experts.
func firstDense(m tiny) tiny {
	const of = "model.layers.0.mlp."
	m.tensors = expand(m.tensors, "#", tinyLayers)
	maps.DeleteFunc(m.tensors, func(name string, _ []int) bool { return strings.HasPrefix(name, of) })
	return m.with(nil, map[string][]int{of + "gate_proj.weight": {24, 16}, of + "up_proj.weight": {24, 16}, of + "down_proj.weight": {16, 24}})
}

func TestMixtureErrors(t *testing.T) {
	all := mixtureModels()
	tinyErrors(t, []refusal{
		{"no bias to choose by", all["glm4-moe-gguf"].with(nil, map[string][]int{"blk.#.exp_probs_b.bias": nil}), arch.ErrTensor, "blk.0.exp_probs_b.bias is missing"},
		{"a layer beyond those that predict", all["glm4-moe"].with(map[string]any{"num_nextn_predict_layers": 0}, nil), arch.ErrTensor, "no use for model.layers.2.eh_proj.weight"},
		{"no gate of what is shared", all["qwen2-moe-gguf"].with(nil, map[string][]int{"blk.#.ffn_gate_inp_shexp.weight": nil}), arch.ErrTensor, "ffn_gate_inp_shexp.weight is missing"},
		{"a gate of what is shared of another shape", all["qwen2-moe-gguf"].with(nil, map[string][]int{"blk.#.ffn_gate_inp_shexp.weight": {2, 16}}), arch.ErrTensor, "ffn_gate_inp_shexp.weight has shape [2 16], want [1 16]"},
		{"another gated unit", all["gpt-oss"].with(map[string]any{"swiglu_alpha": 1.5}, nil), arch.ErrConfig, "swiglu_alpha is 1.5; supported is 1.702"},
		{"no rotary positions", all["gpt-oss"].with(map[string]any{"rope_scaling": nil}, nil), arch.ErrConfig, "neither rope_parameters nor rope_scaling"},
		{"no biases of experts", all["gpt-oss-gguf"].with(nil, map[string][]int{"blk.#.ffn_up_exps.bias": nil}), arch.ErrTensor, "blk.0.ffn_up_exps.bias is missing"},
		{"biases of another shape", all["gpt-oss-gguf"].with(nil, map[string][]int{"blk.#.ffn_up_exps.bias": {4, 9}}), arch.ErrTensor, "blk.0.ffn_up_exps.bias is F32 of shape [4 9], want plain numbers of shape [4 8]"},
		{"norms by head", all["minimax-m2"].with(map[string]any{"qk_norm_type": "per_head"}, nil), arch.ErrConfig, `qk_norm_type is "per_head"; supported is "per_layer"`},
		{"no norms", all["minimax-m2"].with(map[string]any{"use_qk_norm": false}, nil), arch.ErrConfig, "use_qk_norm"},
		{"a shared part", all["minimax-m2"].with(map[string]any{"shared_intermediate_size": 8}, nil), arch.ErrConfig, "shared_intermediate_size is 8"},
	})
}
