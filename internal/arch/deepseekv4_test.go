package arch_test

import (
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
)

// Older configurations have one set of rotary parameters, kinds of layers as rates, and a number of
// layers whose experts a table has. YaRN's magnitude does not count there. There is one shared expert,
// whatever a file says.
func TestDeepSeekV4Keys(t *testing.T) {
	m := goldenModel(t, "deepseek-v4")
	_, model := built(t, m.with(map[string]any{
		"rope_parameters": nil, "layer_types": nil, "mlp_layer_types": nil, "compress_rates": nil,
		"rope_theta": 10000.0, "compress_rope_theta": 160000.0, "compress_ratios": []int{0, 4}, "num_hash_layers": 1, "n_shared_experts": 2,
		"rope_scaling": map[string]any{"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 16},
	}, map[string][]int{
		"model.layers.#.attn.compressor.norm.weight":  nil,
		"model.layers.1.attn.compressor.norm.weight":  {8},
		"model.layers.0.attn.compressor.ape":          nil,
		"model.layers.0.attn.compressor.wgate.weight": nil,
		"model.layers.0.attn.compressor.wkv.weight":   nil,
	}))
	var rates []int
	given := 0
	for i := range model.Program.Nodes {
		switch a := model.Program.Nodes[i].Attr.(type) {
		case plan.AttentionAttr:
			rates = append(rates, a.Rate)
		case plan.RopeAttr:
			if a.Scale != 1 {
				t.Errorf("%s: a magnitude of %v, want 1", model.Program.Nodes[i].Where(), a.Scale)
			}
		case plan.ExpertsAttr:
			if a.Route.Given {
				given++
			}
		}
	}
	if len(rates) != 2 || rates[0] != 0 || rates[1] != 4 || given != 1 {
		t.Errorf("rates of %v and %d layers with a table, want 0 and 4, and 1", rates, given)
	}
}

// What DeepSeek-V4 does not do is refused by name.
func TestDeepSeekV4Errors(t *testing.T) {
	m := goldenModel(t, "deepseek-v4")
	set := func(key string, value any) tiny { return m.with(map[string]any{key: value}, nil) }
	tinyErrors(t, []refusal{
		{"kinds", set("layer_types", []string{"heavily_compressed_attention", "full_attention"}), arch.ErrConfig, `layer_types[1] is "full_attention", want "sliding_attention", "compressed_sparse_attention" or "heavily_compressed_attention"`},
		{"few", set("layer_types", []string{"heavily_compressed_attention"}), arch.ErrConfig, "layer_types names 1 layers and mlp_layer_types 2, of 2"},
		{"experts", set("mlp_layer_types", []string{"hash_moe", "dense"}), arch.ErrConfig, `mlp_layer_types[1] is "dense", want "moe" or "hash_moe"`},
		{"ratios", m.with(map[string]any{"layer_types": nil, "compress_ratios": []int{4, 5}}, nil), arch.ErrConfig, "compress_ratios has 5; supported are 0, 4 and 128"},
		{"groups", set("o_groups", 3), arch.ErrConfig, "o_groups is 3, which does not divide 4 heads"},
		{"heads", set("num_key_value_heads", 2), arch.ErrConfig, "num_key_value_heads is 2; supported is 1"},
		{"biases", set("attention_bias", true), arch.ErrConfig, "attention_bias is true; supported is false"},
		{"index", set("index_head_dim", 1), arch.ErrConfig, "heads of the indexer have 1 elements, of which 2 are rotated"},
		{"limits", goldenModel(t, "deepseek-v4-gguf").with(map[string]any{"swiglu_clamp_exp": []float64{10, 7, 10}}, nil), arch.ErrConfig, "limits of [10 7 10]; supported is one positive limit"},
		{"limits of the shared expert", goldenModel(t, "deepseek-v4-gguf").with(map[string]any{"swiglu_clamp_shexp": []float64{7, 7, 7}}, nil), arch.ErrConfig, "deepseek4.swiglu_clamp_shexp: limits of [10 7]"},
		{"ratios in GGUF", goldenModel(t, "deepseek-v4-gguf").with(map[string]any{"attention.compress_ratios": []int32{0, 8, 0}}, nil), arch.ErrConfig, "deepseek4.attention.compress_ratios has 8"},
		{"table", m.with(map[string]any{"n_routed_experts": 3}, map[string][]int{"model.layers.#.ffn.gate.weight": {3, 16}}), arch.ErrTensor, "tid2eid has expert 3 for token 1, want 0 to 2"},
	})
}
