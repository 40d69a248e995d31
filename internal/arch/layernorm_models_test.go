package arch_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// bare returns a checkpoint of the model without its head, whose names lack the prefix.
func bare(m tiny, base string) tiny {
	tensors := map[string][]int{}
	for name, shape := range m.tensors {
		tensors[strings.TrimPrefix(name, base)] = shape
	}
	m.tensors = tensors
	return m
}

// A checkpoint with other names, or in the other style of config.json, has the same program.
func TestSamePrograms(t *testing.T) {
	epoch := goldenModel(t, "stablelm-hub").with(map[string]any{"architectures": []string{"StableLMEpochForCausalLM"}, "layer_norm_eps": nil, "norm_eps": 1e-5, "rope_pct": 0.25}, nil)
	first := goldenModel(t, "falcon-hub-groups").with(map[string]any{
		"architectures": nil, "model_type": "RefinedWeb", "new_decoder_architecture": nil, "num_kv_heads": nil, "num_hidden_layers": nil, "num_attention_heads": nil,
		"n_head_kv": 2, "n_layer": 2, "n_head": 4,
	}, nil)
	for golden, m := range map[string]tiny{
		"gptneox-hub": goldenModel(t, "gptneox-hub").with(map[string]any{
			"architectures": nil, "model_type": "gpt_neox", "rotary_pct": nil, "rotary_emb_base": nil,
			"rope_parameters": map[string]any{"rope_type": "default", "partial_rotary_factor": 0.5, "rope_theta": 1000},
		}, nil),
		"stablelm-hub":      epoch,
		"falcon-hub-groups": first,
		"phi-hub":           goldenModel(t, "phi-hub").with(map[string]any{"rope_theta": nil, "rope_parameters": map[string]any{"rope_theta": 1000, "partial_rotary_factor": 0.5}}, nil),
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
		built, err := buildFile(t, bare(goldenModel(t, "gpt2-hub"), "transformer.").write(t))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := buildFile(t, goldenModel(t, "gpt2-hub").write(t))
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
		{"nothing turned", config(goldenModel(t, "gptj-hub"), "rotary_dim", json.RawMessage("null")), arch.ErrConfig, "rotary_dim is null"},
		{"cross attention", config(goldenModel(t, "gpt2-hub"), "add_cross_attention", true), arch.ErrConfig, "add_cross_attention is true; supported is false"},
		{"alibi", config(goldenModel(t, "falcon-hub"), "alibi", true), arch.ErrConfig, "alibi is true; supported is false"},
		{"new and not parallel", config(goldenModel(t, "falcon-hub-groups"), "parallel_attn", false), arch.ErrConfig, "parallel_attn is false"},
		{"activation", config(goldenModel(t, "gpt2-hub"), "activation_function", "mish"), arch.ErrConfig, `activation_function is "mish"`},
		{"key of its own name", config(goldenModel(t, "gpt2-hub"), "n_layer", nil), arch.ErrConfig, "n_layer is missing"},
		{"heads", config(goldenModel(t, "falcon-hub-groups"), "num_attention_heads", 0), arch.ErrConfig, "num_attention_heads is 0"},
		{"wide head", config(goldenModel(t, "gptneox-hub"), "rotary_pct", 1.5), arch.ErrConfig, "12 of the 8 elements"},
		{"few positions", shape(goldenModel(t, "gpt2-hub"), "transformer.wpe.weight", []int{63, 32}), arch.ErrTensor, "transformer.wpe.weight has shape [63 32], want rows for the 64 positions"},
		{"no positions", shape(goldenModel(t, "gpt2-hub"), "transformer.wpe.weight", nil), arch.ErrTensor, "transformer.wpe.weight is missing"},
		{"not transposed", shape(goldenModel(t, "gpt2-hub"), "transformer.h.1.attn.c_attn.weight", []int{96, 32}), arch.ErrTensor, "transformer.h.1.attn.c_attn.weight has shape [32 96], want 96 rows"},
		{"groups", shape(goldenModel(t, "falcon-hub-groups"), "transformer.h.1.self_attention.query_key_value.weight", []int{48, 32}), arch.ErrTensor, "has shape [48 32], want 64 rows"},
		{"group of biases", shape(goldenModel(t, "gptneox-hub"), "gpt_neox.layers.0.attention.query_key_value.bias", []int{95}), arch.ErrTensor, "has shape [95], want 96 rows"},
		{"group of no shape", shape(goldenModel(t, "gptneox-hub"), "gpt_neox.layers.0.attention.query_key_value.weight", []int{96, 32, 1}), arch.ErrTensor, "has shape [96 32 1]"},
		{"bias", shape(goldenModel(t, "gptneox-hub"), "gpt_neox.layers.1.mlp.dense_4h_to_h.bias", nil), arch.ErrTensor, "gpt_neox.layers.1.mlp.dense_4h_to_h.bias is missing"},
		{"bias of the head", shape(goldenModel(t, "phi-hub"), "lm_head.bias", nil), arch.ErrTensor, "lm_head.bias is missing"},
		{"norm of the feed-forward layer", shape(goldenModel(t, "falcon-hub-groups"), "transformer.h.0.ln_mlp.weight", nil), arch.ErrTensor, "transformer.h.0.ln_mlp.weight is missing"},
		{"norms of heads", shape(goldenModel(t, "stablelm-hub"), "model.layers.0.self_attn.q_layernorm.norms.3.weight", nil), arch.ErrTensor, "model.layers.0.self_attn.q_layernorm.norms.3.weight is missing"},
		{"more norms than heads", shape(goldenModel(t, "stablelm-hub"), "model.layers.0.self_attn.k_layernorm.norms.2.weight", []int{8}), arch.ErrTensor, "does not use model.layers.0.self_attn.k_layernorm.norms.2.weight"},
		{"norm of a head", shape(goldenModel(t, "stablelm-hub"), "model.layers.0.self_attn.q_layernorm.norms.1.weight", []int{9}), arch.ErrTensor, "has shape [9], want [8]"},
		{"norms of fewer heads", shape(goldenModel(t, "stablelm-gguf"), "blk.1.attn_q_norm.weight", []int{3, 8}), arch.ErrTensor, "blk.1.attn_q_norm.weight has shape [3 8], want 4 vectors of 8"},
		{"sequential without its norm", config(goldenModel(t, "stablelm-hub"), "use_parallel_residual", false), arch.ErrTensor, "model.layers.0.post_attention_layernorm.weight is missing"},
		{"gate without use", shape(goldenModel(t, "nemotron-hub"), "model.layers.0.mlp.gate_proj.weight", []int{48, 32}), arch.ErrTensor, "does not use model.layers.0.mlp.gate_proj.weight"},
	})
}

// Norms that a checkpoint stores minus one equal GGUF's.
func TestNormsLessOne(t *testing.T) {
	built, err := buildFile(t, goldenModel(t, "nemotron-hub").write(t))
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
		if math.Abs(mean-1) > 0.2 { // random values have a mean of about 0, not 1
			t.Errorf("%s: the weights' mean is %v, want about 1", n.Weight.Name, mean)
		}
	}
}
