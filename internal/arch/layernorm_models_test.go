package arch_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// Models of two layers, 32 wide, with four heads of eight and 40 tokens, by the names
// of each file format.

func gpt2Hub() tiny {
	return tiny{
		config: map[string]any{
			"architectures": []string{"GPT2LMHeadModel"}, "n_layer": 2, "n_embd": 32, "n_head": 4, "n_inner": nil, "n_positions": 64,
			"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
		},
		tensors: map[string][]int{
			"transformer.wte.weight": {40, 32}, "transformer.wpe.weight": {64, 32}, "transformer.ln_f.weight": {32}, "transformer.ln_f.bias": {32},
			"transformer.h.#.ln_1.weight": {32}, "transformer.h.#.ln_1.bias": {32}, "transformer.h.#.ln_2.weight": {32}, "transformer.h.#.ln_2.bias": {32},
			"transformer.h.#.attn.bias": {1, 1, 64, 64}, "transformer.h.#.attn.c_attn.weight": {32, 96}, "transformer.h.#.attn.c_attn.bias": {96},
			"transformer.h.#.attn.c_proj.weight": {32, 32}, "transformer.h.#.attn.c_proj.bias": {32},
			"transformer.h.#.mlp.c_fc.weight": {32, 128}, "transformer.h.#.mlp.c_fc.bias": {128},
			"transformer.h.#.mlp.c_proj.weight": {128, 32}, "transformer.h.#.mlp.c_proj.bias": {32},
		},
	}
}

// bare is a checkpoint of the model without its head, whose names lack what they begin with.
func bare(m tiny, base string) tiny {
	tensors := map[string][]int{}
	for name, shape := range m.tensors {
		tensors[strings.TrimPrefix(name, base)] = shape
	}
	m.tensors = tensors
	return m
}

// layerNormGGUF is what the GGUF files of these architectures have in common.
func layerNormGGUF(name string, config map[string]any, tensors map[string][]int) tiny {
	m := tiny{
		config: map[string]any{
			"general.architecture": name, "block_count": 2, "embedding_length": 32, "feed_forward_length": 48, "attention.head_count": 4,
			"context_length": 64, "attention.layer_norm_epsilon": 1e-5,
		},
		tensors: map[string][]int{
			"token_embd.weight": {40, 32}, "output_norm.weight": {32}, "output_norm.bias": {32},
			"blk.#.attn_norm.weight": {32}, "blk.#.attn_norm.bias": {32}, "blk.#.ffn_norm.weight": {32}, "blk.#.ffn_norm.bias": {32},
			"blk.#.attn_output.weight": {32, 32}, "blk.#.ffn_up.weight": {48, 32}, "blk.#.ffn_down.weight": {32, 48},
		},
		gguf: true,
	}
	return m.with(config, tensors)
}

// biases are those of all projections in GGUF.
func biases(tensors map[string][]int) map[string][]int {
	for name, n := range map[string]int{"attn_output": 32, "ffn_up": 48, "ffn_down": 32} {
		tensors["blk.#."+name+".bias"] = []int{n}
	}
	return tensors
}

func gptneoxHub() tiny {
	return tiny{
		config: map[string]any{
			"architectures": []string{"GPTNeoXForCausalLM"}, "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48,
			"max_position_embeddings": 64, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "rotary_pct": 0.5, "rotary_emb_base": 1000,
		},
		tensors: map[string][]int{
			"gpt_neox.embed_in.weight": {40, 32}, "gpt_neox.final_layer_norm.weight": {32}, "gpt_neox.final_layer_norm.bias": {32}, "embed_out.weight": {40, 32},
			"gpt_neox.layers.#.input_layernorm.weight": {32}, "gpt_neox.layers.#.input_layernorm.bias": {32},
			"gpt_neox.layers.#.post_attention_layernorm.weight": {32}, "gpt_neox.layers.#.post_attention_layernorm.bias": {32},
			"gpt_neox.layers.#.attention.query_key_value.weight": {96, 32}, "gpt_neox.layers.#.attention.query_key_value.bias": {96},
			"gpt_neox.layers.#.attention.dense.weight": {32, 32}, "gpt_neox.layers.#.attention.dense.bias": {32},
			"gpt_neox.layers.#.mlp.dense_h_to_4h.weight": {48, 32}, "gpt_neox.layers.#.mlp.dense_h_to_4h.bias": {48},
			"gpt_neox.layers.#.mlp.dense_4h_to_h.weight": {32, 48}, "gpt_neox.layers.#.mlp.dense_4h_to_h.bias": {32},
		},
	}
}

// falconHub has one norm a layer and one head of keys and values, as Falcon-7B.
func falconHub() tiny {
	return tiny{
		config: map[string]any{
			"architectures": []string{"FalconForCausalLM"}, "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "alibi": false,
			"layer_norm_epsilon": 1e-5, "multi_query": true, "parallel_attn": true, "bias": false, "new_decoder_architecture": false,
		},
		tensors: map[string][]int{
			"transformer.word_embeddings.weight": {40, 32}, "transformer.ln_f.weight": {32}, "transformer.ln_f.bias": {32},
			"transformer.h.#.input_layernorm.weight": {32}, "transformer.h.#.input_layernorm.bias": {32},
			"transformer.h.#.self_attention.query_key_value.weight": {48, 32}, "transformer.h.#.self_attention.dense.weight": {32, 32},
			"transformer.h.#.mlp.dense_h_to_4h.weight": {128, 32}, "transformer.h.#.mlp.dense_4h_to_h.weight": {32, 128},
		},
	}
}

// falconGroups has a norm for each part of a layer and two heads of keys and values, as
// Falcon-40B.
func falconGroups() tiny {
	return falconHub().with(map[string]any{"new_decoder_architecture": true, "num_kv_heads": 2}, map[string][]int{
		"transformer.h.#.input_layernorm.weight": nil, "transformer.h.#.input_layernorm.bias": nil,
		"transformer.h.#.ln_attn.weight": {32}, "transformer.h.#.ln_attn.bias": {32}, "transformer.h.#.ln_mlp.weight": {32}, "transformer.h.#.ln_mlp.bias": {32},
		"transformer.h.#.self_attention.query_key_value.weight": {64, 32},
	})
}

// hubLayers is what checkpoints have that are named as most are.
func hubLayers(class string, config map[string]any, tensors map[string][]int) tiny {
	m := tiny{
		config: map[string]any{
			"architectures": []string{class}, "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
			"intermediate_size": 48, "max_position_embeddings": 64, "rope_theta": 1000,
		},
		tensors: map[string][]int{
			"model.embed_tokens.weight": {40, 32}, "model.norm.weight": {32}, "model.norm.bias": {32}, "lm_head.weight": {40, 32},
			"model.layers.#.input_layernorm.weight": {32}, "model.layers.#.input_layernorm.bias": {32},
			"model.layers.#.post_attention_layernorm.weight": {32}, "model.layers.#.post_attention_layernorm.bias": {32},
			"model.layers.#.self_attn.q_proj.weight": {32, 32}, "model.layers.#.self_attn.k_proj.weight": {16, 32},
			"model.layers.#.self_attn.v_proj.weight": {16, 32}, "model.layers.#.self_attn.o_proj.weight": {32, 32},
		},
	}
	return m.with(config, tensors)
}

func phiHub() tiny {
	return hubLayers("PhiForCausalLM", map[string]any{"layer_norm_eps": 1e-5, "qk_layernorm": true, "num_key_value_heads": 4}, map[string][]int{
		"model.norm.weight": nil, "model.norm.bias": nil, "model.final_layernorm.weight": {32}, "model.final_layernorm.bias": {32}, "lm_head.bias": {40},
		"model.layers.#.post_attention_layernorm.weight": nil, "model.layers.#.post_attention_layernorm.bias": nil,
		"model.layers.#.self_attn.q_proj.bias": {32}, "model.layers.#.self_attn.k_proj.weight": {32, 32}, "model.layers.#.self_attn.k_proj.bias": {32},
		"model.layers.#.self_attn.v_proj.weight": {32, 32}, "model.layers.#.self_attn.v_proj.bias": {32},
		"model.layers.#.self_attn.o_proj.weight": nil, "model.layers.#.self_attn.dense.weight": {32, 32}, "model.layers.#.self_attn.dense.bias": {32},
		"model.layers.#.self_attn.q_layernorm.weight": {8}, "model.layers.#.self_attn.q_layernorm.bias": {8},
		"model.layers.#.self_attn.k_layernorm.weight": {8}, "model.layers.#.self_attn.k_layernorm.bias": {8},
		"model.layers.#.mlp.fc1.weight": {48, 32}, "model.layers.#.mlp.fc1.bias": {48}, "model.layers.#.mlp.fc2.weight": {32, 48}, "model.layers.#.mlp.fc2.bias": {32},
	})
}

func starcoder2Hub() tiny {
	return hubLayers("Starcoder2ForCausalLM", map[string]any{"norm_epsilon": 1e-5, "use_bias": false, "sliding_window": 8}, map[string][]int{
		"lm_head.weight": nil, "model.layers.#.mlp.c_fc.weight": {48, 32}, "model.layers.#.mlp.c_proj.weight": {32, 48},
	})
}

var gated = map[string][]int{"model.layers.#.mlp.gate_proj.weight": {48, 32}, "model.layers.#.mlp.up_proj.weight": {48, 32}, "model.layers.#.mlp.down_proj.weight": {32, 48}}

// stablelmHub is shaped like StableLM 2 12B.
func stablelmHub() tiny {
	return hubLayers("StableLmForCausalLM", map[string]any{"layer_norm_eps": 1e-5, "use_parallel_residual": true, "qk_layernorm": true}, gated).with(nil, map[string][]int{
		"model.layers.#.post_attention_layernorm.weight": nil, "model.layers.#.post_attention_layernorm.bias": nil,
		"model.layers.#.self_attn.q_layernorm.norms.0.weight": {8}, "model.layers.#.self_attn.q_layernorm.norms.1.weight": {8},
		"model.layers.#.self_attn.q_layernorm.norms.2.weight": {8}, "model.layers.#.self_attn.q_layernorm.norms.3.weight": {8},
		"model.layers.#.self_attn.k_layernorm.norms.0.weight": {8}, "model.layers.#.self_attn.k_layernorm.norms.1.weight": {8},
	})
}

// stablelmGGUF is sequential, whatever its key says.
func stablelmGGUF() tiny {
	return layerNormGGUF("stablelm", map[string]any{"attention.head_count_kv": 2, "use_parallel_residual": true, "rope.dimension_count": 2}, apart).with(nil, map[string][]int{
		"output.weight": {40, 32}, "blk.#.ffn_gate.weight": {48, 32}, "blk.#.attn_q_norm.weight": {4, 8}, "blk.#.attn_k_norm.weight": {2, 8},
	})
}

func nemotronHub() tiny {
	return hubLayers("NemotronForCausalLM", map[string]any{"norm_eps": 1e-5, "attention_bias": true, "mlp_bias": true}, gated).with(nil, map[string][]int{
		"model.layers.#.mlp.gate_proj.weight": nil, "model.layers.#.mlp.up_proj.bias": {48}, "model.layers.#.mlp.down_proj.bias": {32},
		"model.layers.#.self_attn.q_proj.bias": {32}, "model.layers.#.self_attn.k_proj.bias": {16},
		"model.layers.#.self_attn.v_proj.bias": {16}, "model.layers.#.self_attn.o_proj.bias": {32},
	})
}

func gptjHub() tiny {
	return tiny{
		config: map[string]any{
			"architectures": []string{"GPTJForCausalLM"}, "n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 64,
			"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "rotary_dim": 6,
		},
		tensors: map[string][]int{
			"transformer.wte.weight": {40, 32}, "transformer.ln_f.weight": {32}, "transformer.ln_f.bias": {32}, "lm_head.weight": {40, 32}, "lm_head.bias": {40},
			"transformer.h.#.ln_1.weight": {32}, "transformer.h.#.ln_1.bias": {32}, "transformer.h.#.attn.masked_bias": {1},
			"transformer.h.#.attn.q_proj.weight": {32, 32}, "transformer.h.#.attn.k_proj.weight": {32, 32},
			"transformer.h.#.attn.v_proj.weight": {32, 32}, "transformer.h.#.attn.out_proj.weight": {32, 32},
			"transformer.h.#.mlp.fc_in.weight": {128, 32}, "transformer.h.#.mlp.fc_in.bias": {128},
			"transformer.h.#.mlp.fc_out.weight": {32, 128}, "transformer.h.#.mlp.fc_out.bias": {32},
		},
	}
}

// apart are queries, keys and values of two heads in GGUF.
var apart = map[string][]int{"blk.#.attn_q.weight": {32, 32}, "blk.#.attn_k.weight": {16, 32}, "blk.#.attn_v.weight": {16, 32}}

func TestLayerNormPrograms(t *testing.T) {
	tinyPrograms(t, map[string]tiny{
		"gpt2-hub":       gpt2Hub(),
		"gpt2-hub-scale": gpt2Hub().with(map[string]any{"scale_attn_weights": false, "scale_attn_by_inverse_layer_idx": true}, nil),
		"gpt2-gguf": layerNormGGUF("gpt2", nil, biases(map[string][]int{
			"position_embd.weight": {64, 32}, "blk.#.attn_qkv.weight": {96, 32}, "blk.#.attn_qkv.bias": {96},
		})),
		"gptj-hub":    gptjHub(),
		"gptneox-hub": gptneoxHub(),
		"gptneox-hub-sequential": gptneoxHub().with(map[string]any{"use_parallel_residual": false, "attention_bias": false}, map[string][]int{
			"gpt_neox.layers.#.attention.query_key_value.bias": nil, "gpt_neox.layers.#.attention.dense.bias": nil,
		}),
		"gptneox-gguf": layerNormGGUF("gptneox", map[string]any{"use_parallel_residual": true, "rope.dimension_count": 4}, biases(map[string][]int{
			"output.weight": {40, 32}, "blk.#.attn_qkv.weight": {96, 32}, "blk.#.attn_qkv.bias": {96},
		})),
		"falcon-hub": falconHub(),
		"falcon-hub-sequential": falconHub().with(map[string]any{"parallel_attn": false, "multi_query": false, "ffn_hidden_size": 48}, map[string][]int{
			"transformer.h.#.post_attention_layernorm.weight": {32}, "transformer.h.#.post_attention_layernorm.bias": {32},
			"transformer.h.#.self_attention.query_key_value.weight": {96, 32},
			"transformer.h.#.mlp.dense_h_to_4h.weight":              {48, 32}, "transformer.h.#.mlp.dense_4h_to_h.weight": {32, 48},
		}),
		"falcon-hub-groups": falconGroups(),
		"falcon-gguf": layerNormGGUF("falcon", map[string]any{"attention.head_count_kv": 2}, map[string][]int{
			"blk.#.attn_norm_2.weight": {32}, "blk.#.attn_norm_2.bias": {32}, "blk.#.ffn_norm.weight": nil, "blk.#.ffn_norm.bias": nil, "blk.#.attn_qkv.weight": {64, 32},
		}),
		"phi-hub": phiHub(),
		"phi-gguf": layerNormGGUF("phi2", map[string]any{"rope.dimension_count": 4, "attention.head_count_kv": 4}, biases(map[string][]int{
			"output.weight": {40, 32}, "output.bias": {40}, "blk.#.ffn_norm.weight": nil, "blk.#.ffn_norm.bias": nil, "blk.#.attn_qkv.weight": {96, 32}, "blk.#.attn_qkv.bias": {96},
		})),
		"starcoder2-hub":  starcoder2Hub(),
		"starcoder2-gguf": layerNormGGUF("starcoder2", map[string]any{"attention.head_count_kv": 2, "rope.freq_base": 1000.0}, biases(apart)),
		"stablelm-hub":    stablelmHub(),
		"stablelm-gguf":   stablelmGGUF(),
		"nemotron-hub":    nemotronHub(),
		"nemotron-gguf":   layerNormGGUF("nemotron", map[string]any{"attention.head_count_kv": 2, "rope.dimension_count": 4}, apart).with(nil, map[string][]int{"output.weight": {40, 32}}),
	})
}

// A checkpoint of other names, or in the other style of its configuration, is the same program.
func TestSamePrograms(t *testing.T) {
	epoch := stablelmHub().with(map[string]any{"architectures": []string{"StableLMEpochForCausalLM"}, "layer_norm_eps": nil, "norm_eps": 1e-5, "rope_pct": 0.25}, nil)
	first := falconGroups().with(map[string]any{
		"architectures": nil, "model_type": "RefinedWeb", "new_decoder_architecture": nil, "num_kv_heads": nil, "num_hidden_layers": nil, "num_attention_heads": nil,
		"n_head_kv": 2, "n_layer": 2, "n_head": 4,
	}, nil)
	for golden, m := range map[string]tiny{
		"gptneox-hub": gptneoxHub().with(map[string]any{
			"architectures": nil, "model_type": "gpt_neox", "rotary_pct": nil, "rotary_emb_base": nil,
			"rope_parameters": map[string]any{"rope_type": "default", "partial_rotary_factor": 0.5, "rope_theta": 1000},
		}, nil),
		"stablelm-hub":      epoch,
		"falcon-hub-groups": first,
		"phi-hub":           phiHub().with(map[string]any{"rope_theta": nil, "rope_parameters": map[string]any{"rope_theta": 1000, "partial_rotary_factor": 0.5}}, nil),
	} {
		t.Run(golden, func(t *testing.T) {
			built, err := buildFile(t, m.write(t))
			if err != nil {
				t.Fatal(err)
			}
			sameAsGolden(t, golden, built)
		})
	}
	t.Run("gpt2-hub without a beginning", func(t *testing.T) {
		built, err := buildFile(t, bare(gpt2Hub(), "transformer.").write(t))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := buildFile(t, gpt2Hub().write(t))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(whole.Program.String(), "transformer.", ""); built.Program.String() != want {
			t.Errorf("the program is\n%s\nwant\n%s", built.Program, want)
		}
	})
}

func TestLayerNormErrors(t *testing.T) {
	config := func(m tiny, key string, v any) tiny { return m.with(map[string]any{key: v}, nil) }
	shape := func(m tiny, name string, shape []int) tiny { return m.with(nil, map[string][]int{name: shape}) }
	tinyErrors(t, []refusal{
		{"nothing turned", config(gptjHub(), "rotary_dim", json.RawMessage("null")), arch.ErrConfig, "rotary_dim is null"},
		{"cross attention", config(gpt2Hub(), "add_cross_attention", true), arch.ErrConfig, "add_cross_attention is true; supported is false"},
		{"alibi", config(falconHub(), "alibi", true), arch.ErrConfig, "alibi is true; supported is false"},
		{"new and not parallel", config(falconGroups(), "parallel_attn", false), arch.ErrConfig, "parallel_attn is false"},
		{"activation", config(gpt2Hub(), "activation_function", "mish"), arch.ErrConfig, `activation_function is "mish"`},
		{"key of its own name", config(gpt2Hub(), "n_layer", nil), arch.ErrConfig, "n_layer is missing"},
		{"heads", config(falconGroups(), "num_attention_heads", 0), arch.ErrConfig, "num_attention_heads is 0"},
		{"wide head", config(gptneoxHub(), "rotary_pct", 1.5), arch.ErrConfig, "12 of the 8 elements"},
		{"few positions", shape(gpt2Hub(), "transformer.wpe.weight", []int{63, 32}), arch.ErrTensor, "transformer.wpe.weight has shape [63 32], want rows for the 64 positions"},
		{"no positions", shape(gpt2Hub(), "transformer.wpe.weight", nil), arch.ErrTensor, "transformer.wpe.weight is missing"},
		{"not transposed", shape(gpt2Hub(), "transformer.h.1.attn.c_attn.weight", []int{96, 32}), arch.ErrTensor, "transformer.h.1.attn.c_attn.weight has shape [32 96], want 96 rows"},
		{"groups", shape(falconGroups(), "transformer.h.1.self_attention.query_key_value.weight", []int{48, 32}), arch.ErrTensor, "has shape [48 32], want 64 rows"},
		{"group of biases", shape(gptneoxHub(), "gpt_neox.layers.0.attention.query_key_value.bias", []int{95}), arch.ErrTensor, "has shape [95], want 96 rows"},
		{"group of no shape", shape(gptneoxHub(), "gpt_neox.layers.0.attention.query_key_value.weight", []int{96, 32, 1}), arch.ErrTensor, "has shape [96 32 1]"},
		{"bias", shape(gptneoxHub(), "gpt_neox.layers.1.mlp.dense_4h_to_h.bias", nil), arch.ErrTensor, "gpt_neox.layers.1.mlp.dense_4h_to_h.bias is missing"},
		{"bias of the head", shape(phiHub(), "lm_head.bias", nil), arch.ErrTensor, "lm_head.bias is missing"},
		{"norm of the feed-forward layer", shape(falconGroups(), "transformer.h.0.ln_mlp.weight", nil), arch.ErrTensor, "transformer.h.0.ln_mlp.weight is missing"},
		{"norms of heads", shape(stablelmHub(), "model.layers.0.self_attn.q_layernorm.norms.3.weight", nil), arch.ErrTensor, "model.layers.0.self_attn.q_layernorm.norms.3.weight is missing"},
		{"more norms than heads", shape(stablelmHub(), "model.layers.0.self_attn.k_layernorm.norms.2.weight", []int{8}), arch.ErrTensor, "no use for model.layers.0.self_attn.k_layernorm.norms.2.weight"},
		{"norm of a head", shape(stablelmHub(), "model.layers.0.self_attn.q_layernorm.norms.1.weight", []int{9}), arch.ErrTensor, "has shape [9], want [8]"},
		{"norms of fewer heads", shape(stablelmGGUF(), "blk.1.attn_q_norm.weight", []int{3, 8}), arch.ErrTensor, "blk.1.attn_q_norm.weight has shape [3 8], want 4 vectors of 8"},
		{"sequential without its norm", config(stablelmHub(), "use_parallel_residual", false), arch.ErrTensor, "model.layers.0.post_attention_layernorm.weight is missing"},
		{"gate without use", shape(nemotronHub(), "model.layers.0.mlp.gate_proj.weight", []int{48, 32}), arch.ErrTensor, "no use for model.layers.0.mlp.gate_proj.weight"},
	})
}

// Norms that a checkpoint holds less one are the GGUF's.
func TestNormsLessOne(t *testing.T) {
	built, err := buildFile(t, nemotronHub().write(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range built.Program.Nodes {
		if n.Bias == nil || n.Op.String() != "layernorm" {
			continue
		}
		values, err := n.Weight.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for _, v := range values {
			mean += float64(v) / float64(len(values))
		}
		if math.Abs(mean-1) > 0.2 { // of 32 values about 0
			t.Errorf("%s: the weights' mean is %v, want about 1", n.Weight.Name, mean)
		}
	}
}
