package arch_test

import (
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// Mixtures with other options.
func TestMixtureVariants(t *testing.T) {
	with := func(name string, config map[string]any) tiny { return goldenModel(t, name).with(config, nil) }
	sparse := map[string][]int{}
	for _, part := range []string{"router.gate.weight", "expert_bias", "experts.@.gate_proj.weight", "experts.@.up_proj.weight", "experts.@.down_proj.weight",
		"shared_mlp.gate_proj.weight", "shared_mlp.up_proj.weight", "shared_mlp.down_proj.weight"} {
		sparse["model.layers.0.mlp."+part] = goldenModel(t, "hy-v3").tensors["model.layers.1.mlp."+part]
	}
	for _, part := range []string{"gate_proj.weight", "up_proj.weight", "down_proj.weight"} {
		sparse["model.layers.0.mlp."+part] = nil
	}
	tinyPrograms(t, []variant{
		{name: "nothing is clamped", model: with("olmoe", map[string]any{"clip_qkv": nil}), without: "clamp"},
		{name: "clamped in GGUF", model: with("olmoe-gguf", map[string]any{"attention.clamp_kqv": 6.0}), has: []string{"{clamp 6}"}},
		{name: "weights normalized", model: with("olmoe", map[string]any{"norm_topk_prob": true}), has: []string{"softmax, normalized"}},
		{name: "experts in every layer by names", model: goldenModel(t, "hy-v3").with(map[string]any{"mlp_layer_types": []string{"sparse", "sparse"}}, sparse), has: []string{"experts %12"}},
		{name: "no shared expert", model: goldenModel(t, "granite-moe").with(map[string]any{"architectures": []string{"GraniteMoeSharedForCausalLM"}, "shared_intermediate_size": 0}, map[string][]int{
			ofLayer + "shared_mlp.input_linear.weight": nil, ofLayer + "shared_mlp.output_linear.weight": nil}), without: "shared_mlp"},
		{name: "a window in the last layer", model: with("exaone-moe", map[string]any{"layer_types": []string{"full_attention", "sliding_attention"}}), has: []string{"window 4} @1"}},
		{name: "letters by repetition", model: with("exaone-moe-first", map[string]any{"sliding_window_pattern": "L"}), has: []string{"window 4} @0", "scale 0.35355339} @1"}},
		{name: "positions everywhere without windows", model: nulls(with("exaone-moe", map[string]any{"layer_types": nil}), "sliding_window"), has: []string{"%23 [T 32] = rope"}, without: "window"},
		{name: "no positions in dense layers", model: with("cohere2-moe", map[string]any{"prefix_dense_sliding_window_pattern": 2, "layer_types": []string{"full_attention", "sliding_attention"}}), has: []string{"attention %2 %3 %4"}},
		{name: "embeddings as they are", model: with("afmoe", map[string]any{"mup_enabled": false}), without: "scale 4}"},
		{name: "no softcap of the router", model: with("laguna", map[string]any{"moe_router_logit_softcapping": 0.0}), without: "softcap"},
		{name: "a pattern of windows", model: with("laguna-gguf", map[string]any{"attention.sliding_window_pattern": []bool{true, false}}), has: []string{"window 4} @0"}},
		{name: "jitter by default", model: with("phimoe", map[string]any{"router_jitter_noise": nil}), has: []string{"sparse mixer, jitter 0.01"}},
		{name: "another jitter", model: with("phimoe", map[string]any{"router_jitter_noise": 0.25}), has: []string{"sparse mixer, jitter 0.25"}},
		{name: "a magnitude of its own", model: goldenModel(t, "phimoe-first"), has: []string{"scale 1.24316", "window 64"}},
	})
}

func TestMixtureErrors(t *testing.T) {
	tinyErrors(t, []refusal{
		{"no bias to choose by", goldenModel(t, "glm4-moe-gguf").with(nil, map[string][]int{"blk.#.exp_probs_b.bias": nil}), arch.ErrTensor, "blk.0.exp_probs_b.bias is missing"},
		{"a layer beyond those that predict", goldenModel(t, "glm4-moe").with(map[string]any{"num_nextn_predict_layers": 0}, nil), arch.ErrTensor, "does not use model.layers.2.eh_proj.weight"},
		{"no gate of what is shared", goldenModel(t, "qwen2-moe-gguf").with(nil, map[string][]int{"blk.#.ffn_gate_inp_shexp.weight": nil}), arch.ErrTensor, "ffn_gate_inp_shexp.weight is missing"},
		{"a gate of what is shared of another shape", goldenModel(t, "qwen2-moe-gguf").with(nil, map[string][]int{"blk.#.ffn_gate_inp_shexp.weight": {2, 16}}), arch.ErrTensor, "ffn_gate_inp_shexp.weight has shape [2 16], want [1 16]"},
		{"another gated unit", goldenModel(t, "gpt-oss").with(map[string]any{"swiglu_alpha": 1.5}, nil), arch.ErrConfig, "swiglu_alpha is 1.5; supported is 1.702"},
		{"no rotary positions", goldenModel(t, "gpt-oss").with(map[string]any{"rope_scaling": nil}, nil), arch.ErrConfig, "both rope_parameters and rope_scaling are missing"},
		{"no biases of experts", goldenModel(t, "gpt-oss-gguf").with(nil, map[string][]int{"blk.#.ffn_up_exps.bias": nil}), arch.ErrTensor, "blk.0.ffn_up_exps.bias is missing"},
		{"biases of another shape", goldenModel(t, "gpt-oss-gguf").with(nil, map[string][]int{"blk.#.ffn_up_exps.bias": {4, 9}}), arch.ErrTensor, "blk.0.ffn_up_exps.bias is F32 of shape [4 9], want unquantized numbers of shape [4 8]"},
		{"norms by head", goldenModel(t, "minimax-m2").with(map[string]any{"qk_norm_type": "per_head"}, nil), arch.ErrConfig, `qk_norm_type is "per_head"; supported is "per_layer"`},
		{"no norms", goldenModel(t, "minimax-m2").with(map[string]any{"use_qk_norm": false}, nil), arch.ErrConfig, "use_qk_norm"},
		{"a third expert", goldenModel(t, "phimoe").with(map[string]any{"num_experts_per_tok": 3}, nil), arch.ErrConfig, "num_experts_per_tok is 3; SparseMixer chooses 2 experts"},
		{"two magnitudes", goldenModel(t, "phimoe").with(map[string]any{"rope_parameters": map[string]any{"rope_type": "longrope", "short_factor": []float64{1, 1, 1, 1}, "long_factor": []float64{2, 2, 2, 2},
			"short_mscale": 1.1, "long_mscale": 1.2, "original_max_position_embeddings": 16}}, nil), arch.ErrConfig, "rope_parameters.long_mscale is 1.2 beside a short_mscale of 1.1"},
		{"layers of a kind", goldenModel(t, "laguna").with(map[string]any{"mlp_layer_types": []string{"dense", "shared"}}, nil), arch.ErrConfig, `mlp_layer_types[1] is "shared", want "dense" or "sparse"`},
		{"layers of too few kinds", goldenModel(t, "laguna").with(map[string]any{"mlp_layer_types": []string{"dense"}}, nil), arch.ErrConfig, "mlp_layer_types names 1 layers of 2"},
		{"heads of too few layers", goldenModel(t, "laguna").with(map[string]any{"num_attention_heads_per_layer": []int{4}}, nil), arch.ErrConfig, "num_attention_heads_per_layer has 1 numbers for 2 layers"},
		{"heads that cannot share", goldenModel(t, "laguna").with(map[string]any{"num_attention_heads_per_layer": []int{4, 5}}, nil), arch.ErrConfig, "5 query heads cannot share 2"},
		{"a gate of neither", goldenModel(t, "laguna").with(nil, map[string][]int{"model.layers.0.self_attn.g_proj.weight": {8, 16}}), arch.ErrTensor, "model.layers.0.self_attn.g_proj.weight has shape [8 16], want 32 rows"},
		{"weights of inputs", goldenModel(t, "laguna").with(map[string]any{"moe_apply_router_weight_on_input": true}, nil), arch.ErrConfig, "moe_apply_router_weight_on_input is true"},
		{"another choice", goldenModel(t, "cohere2-moe").with(map[string]any{"expert_selection_fn": "softmin"}, nil), arch.ErrConfig, `expert_selection_fn is "softmin"; the nearest known are "softmax"`},
		{"another combination", goldenModel(t, "cohere2-moe").with(map[string]any{"shared_expert_combination_strategy": "max"}, nil), arch.ErrConfig, `shared_expert_combination_strategy is "max"`},
		{"an epsilon", goldenModel(t, "cohere2-moe").with(map[string]any{"rms_norm_eps": -1.0}, nil), arch.ErrConfig, "rms_norm_eps is -1, want a positive number"},
		{"letters", goldenModel(t, "exaone-moe-first").with(map[string]any{"sliding_window_pattern": "LX"}, nil), arch.ErrConfig, `sliding_window_pattern is "LX", want letters L and G`},
		{"experts by layer", goldenModel(t, "hunyuan-moe").with(map[string]any{"moe_topk": []int{1, 2}}, nil), arch.ErrConfig, "moe_topk is of type"},
		{"several shared experts", goldenModel(t, "hunyuan-moe").with(map[string]any{"num_shared_expert": []int{2, 2}}, nil), arch.ErrConfig, "num_shared_expert is 2; supported is 1"},
		{"layers that share attention", goldenModel(t, "hunyuan-moe").with(map[string]any{"use_cla": true}, nil), arch.ErrConfig, "use_cla is true"},
		{"a clamp", goldenModel(t, "olmoe").with(map[string]any{"clip_qkv": -2.0}, nil), arch.ErrConfig, "clip_qkv is -2"},
		{"tensors of other parts by another name", goldenModel(t, "ernie4-5-moe").with(nil, map[string][]int{"model.mtq_block.0.weight": {16}}), arch.ErrTensor, "does not use model.mtq_block.0.weight"},
		{"a shared part", goldenModel(t, "minimax-m2").with(map[string]any{"shared_intermediate_size": 8}, nil), arch.ErrConfig, "shared_intermediate_size is 8"},
	})
}
