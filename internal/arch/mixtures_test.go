package arch_test

import (
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

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
		{"a shared part", goldenModel(t, "minimax-m2").with(map[string]any{"shared_intermediate_size": 8}, nil), arch.ErrConfig, "shared_intermediate_size is 8"},
	})
}
