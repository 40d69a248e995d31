package arch_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// deepTarget writes a model like that of the plan llama-hub with 6 layers, so that all default taps
// exist, and returns its path.
func deepTarget(t *testing.T) string {
	t.Helper()
	m := goldenModel(t, "llama-hub")
	return m.with(map[string]any{"num_hidden_layers": 6}, expand(m.tensors, "#", 6)).write(t)
}

// published is a head with the tensors of eagleTensors and what published ones have besides.
func published(config map[string]any, prefix string, more map[string][]int) tinyEagle {
	m := tinyEagle{tiny{config: config, tensors: map[string][]int{}}, eagleIDs}
	for name, shape := range eagleTensors {
		m.tensors[strings.Replace(name, "midlayer.", prefix, 1)] = shape
	}
	maps.Copy(m.tensors, more)
	return m
}

// Configurations and names of tensors as published heads have them, with small sizes, give the program
// of a plain head with the same numbers. Not from their files: SafeAILab's EAGLE, SpecForge's configs,
// speculators' and ModelOpt's exporters, llama.cpp's conversion/llama.py.
func TestPublishedEagles(t *testing.T) {
	const sizes = `"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "rms_norm_eps": 1e-05, "vocab_size": 40`
	llama3 := `{"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}`
	for _, c := range []struct {
		name, config, prefix string
		more                 map[string][]int // tensors beside those of the layer
		taps                 []any            // the streams, by the layers before them
		same                 string           // what the plain head's configuration has of it
	}{
		{"yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", `{` + sizes + `, "architectures": ["LlamaForCausalLMEagle3"], "bos_token_id": 1, "eos_token_id": [2, 3], "hidden_act": "silu", "initializer_range": 0.02,
			"max_position_embeddings": 2048, "model_type": "llama", "pad_token_id": 0, "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.28.1", "use_cache": true, "draft_vocab_size": 5}`,
			"midlayer.", nil, []any{2, 3, 3}, `{"rope_theta": 10000.0}`},
		{"SpecForge, Qwen3", `{` + sizes + `, "architectures": ["LlamaForCausalLMEagle3"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "head_dim": 8, "hidden_act": "silu",
			"initializer_range": 0.02, "max_position_embeddings": 2048, "max_window_layers": 48, "model_type": "llama", "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "use_sliding_window": false, "draft_vocab_size": 5,
			"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 4], "use_aux_hidden_state": true}}`,
			"midlayer.", nil, []any{2, 3, 5}, `{"rope_theta": 1000000.0}`},
		{"SpecForge, gpt-oss", `{` + sizes + `, "architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]}, "head_dim": 8, "hidden_act": "silu", "initializer_range": 0.02,
			"num_local_experts": 16, "max_position_embeddings": 4096, "model_type": "llama", "pad_token_id": 0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
			"experts_per_token": 4, "draft_vocab_size": 5}`,
			"midlayer.", nil, []any{2, 3, 4}, `{"rope_theta": 10000.0}`},
		{"ModelOpt (nvidia/gpt-oss-120b-Eagle3)", `{` + sizes + `, "architectures": ["LlamaForCausalLMEagle3"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": [2], "head_dim": 8,
			"eagle_config": {"eagle_aux_hidden_state_layer_ids": [], "use_aux_hidden_state": true, "use_input_layernorm_in_first_layer": true, "use_last_layernorm": true, "use_mtp_layernorm": false,
			"next_layer_regular": true, "parallel_draft_step": 1, "parallel_draft_heads_num_layers": null}, "hidden_act": "silu", "initializer_range": 0.02, "max_position_embeddings": 4096, "mlp_bias": false,
			"model_type": "llama", "pretraining_tp": 1, "rope_scaling": ` + llama3 + `, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "draft_vocab_size": 5}`,
			"midlayer.", nil, []any{2, 3, 3}, `{"rope_theta": 500000.0, "rope_scaling": ` + llama3 + `}`},
		{"nebius/EAGLE3-gpt-oss-20b", `{` + sizes + `, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "truncated_vocab_size": 5, "draft_vocab_size": 5, "head_dim": 8, "max_position_embeddings": 4096, "rope_theta": 150000,
			"rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}}`,
			"midlayer.", nil, []any{2, 3, 3}, `{"rope_theta": 150000.0, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}}`},
		{"RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", `{"architectures": ["Eagle3Speculator"], "auto_map": {"": "eagle3.Eagle3SpeculatorConfig"}, "draft_vocab_size": 5, "has_no_defaults_at_init": false,
			"norm_before_residual": true, "speculators_config": {"algorithm": "eagle3", "default_proposal_method": "greedy", "proposal_methods": [{"accept_tolerance": 0.0, "proposal_type": "greedy", "speculative_tokens": 5,
			"verifier_accept_k": 1}], "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "meta-llama/Llama-3.1-8B-Instruct"}}, "speculators_model_type": "eagle3", "speculators_version": "0.1.0.dev14",
			"target_hidden_size": null, "torch_dtype": "float32", "transformer_layer_config": {` + sizes + `, "attention_bias": false, "attention_dropout": 0.0, "head_dim": 8, "hidden_act": "silu", "initializer_range": 0.02,
			"max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "pretraining_tp": 1, "rope_scaling": ` + llama3 + `, "rope_theta": 500000.0, "use_cache": true}}`,
			"layers.0.", map[string][]int{"embed_tokens.weight": {40, 32}}, []any{2, 3, 3}, `{"rope_theta": 500000.0, "rope_scaling": ` + llama3 + `, "norm_before_residual": true}`},
		{"speculators 0.4, Qwen3", `{"architectures": ["Eagle3DraftModel"], "draft_vocab_size": 5, "dtype": "bfloat16", "eagle_aux_hidden_state_layer_ids": [2, 3, 6], "embed_requires_grad": false, "norm_before_fc": false,
			"norm_before_residual": true, "speculators_config": {"algorithm": "eagle3", "verifier": {"architectures": ["Qwen3ForCausalLM"], "name_or_path": "Qwen/Qwen3-8B"}}, "speculators_model_type": "eagle3",
			"target_hidden_size": 32, "transformer_layer_config": {` + sizes + `, "head_dim": 8, "hidden_act": "silu", "max_position_embeddings": 40960, "model_type": "llama", "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}}}`,
			"layers.0.", map[string][]int{"embed_tokens.weight": {40, 32}}, []any{2, 3, 6}, `{"rope_theta": 1000000.0, "norm_before_residual": true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := openFile(t, deepTarget(t))
			program := func(m tinyEagle) string {
				t.Helper()
				built, err := arch.BuildEagle(target, openFile(t, m.write(t)))
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(built.Program.String(), "layers.0.", "midlayer.")
			}
			plain := tinyEagle{tiny{config: eagleConfig, tensors: eagleTensors}.with(map[string]any{"eagle_config": nil, "eagle_aux_hidden_state_layer_ids": c.taps}, c.more), eagleIDs}
			plain.config = merged(t, plain.config, c.same)
			if got, want := program(published(merged(t, nil, c.config), c.prefix, c.more)), program(plain); got != want {
				t.Errorf("the program\n%s\nis not that of a plain head:\n%s", got, want)
			}
		})
	}
}

// What is wrong with a head is an error that names it.
func TestWrongEagles(t *testing.T) {
	for _, c := range []struct {
		name   string
		config string // of the head
		more   map[string][]int
		ids    []int32
		says   string
	}{
		{"another hidden size", `{"target_hidden_size": 64}`, nil, nil, "target_hidden_size is 64; the hidden states of the target have 32 numbers"},
		{"fc of another target", `{}`, map[string][]int{"fc.weight": {32, 192}}, nil, "fc.weight has shape [32 192], want 96 columns for three hidden states of the target"},
		{"no fc", `{}`, map[string][]int{"fc.weight": nil}, nil, "fc.weight is missing"},
		{"no lm_head of d2t", `{}`, map[string][]int{"lm_head.weight": nil}, nil, "lm_head.weight is missing"},
		{"no hidden_norm", `{}`, map[string][]int{"midlayer.hidden_norm.weight": nil}, nil, "midlayer.hidden_norm.weight is missing"},
		{"an lm_head of another draft vocabulary", `{}`, map[string][]int{"lm_head.weight": {6, 32}}, nil, "lm_head.weight has shape [6 32], want 5 rows"},
		{"a larger vocabulary", `{"vocab_size": 41}`, nil, nil, "vocab_size is 41; the target has 40 tokens"},
		{"a token that the target lacks", `{}`, nil, []int32{0, 3, 4, 17, 40}, "d2t[4] stands for token 40"},
		{"a token twice", `{}`, nil, []int32{0, 3, 4, 17, 3}, "d2t[4] stands for token 3, which the target does not have or an earlier one stands for"},
		{"several layers", `{"num_hidden_layers": 2}`, nil, nil, "it has 2 layers; EAGLE-3 heads have 1"},
		{"two streams", `{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}}`, nil, nil, "eagle_config.eagle_aux_hidden_state_layer_ids has 2 layers; EAGLE-3 heads read 3"},
		{"a layer that the target lacks", `{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 6]}}`, nil, nil, "eagle_config.eagle_aux_hidden_state_layer_ids reads the stream after 7 layers; the target has 6 layers"},
		{"the last hidden state alone (nvidia/gpt-oss-120b-Eagle3-v2)", `{"eagle_config": {"use_aux_hidden_state": false}}`, nil, nil, "eagle_config.use_aux_hidden_state is false; supported is true"},
		{"a norm before fc (RedHatAI/gpt-oss-20b-speculator.eagle3)", `{"norm_before_fc": true}`, map[string][]int{"input_norm.weight": {96}}, nil, "norm_before_fc is true; supported is false"},
		{"norms of the streams (EAGLE-3.1)", `{"fc_norm": true}`, map[string][]int{"fcs.0.weight": {32}}, nil, "fc_norm is true; supported is false"},
		{"normalized hidden states (EAGLE-3.1)", `{"norm_output": true}`, nil, nil, "norm_output is true; supported is false"},
		{"further tensors", `{}`, map[string][]int{"midlayer.self_attn.q_norm.weight": {8}}, nil, "midlayer.self_attn.q_norm.weight"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := published(merged(t, eagleConfig, `{"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]}}`), "midlayer.", c.more)
			m.config = merged(t, m.config, c.config)
			if c.ids != nil {
				m.ids = c.ids
			}
			head := openFile(t, m.write(t))
			_, err := arch.BuildEagle(openFile(t, deepTarget(t)), head)
			if err == nil || !strings.Contains(err.Error(), "EAGLE-3 head "+head.Path()+": ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if err != nil && !errors.Is(err, arch.ErrConfig) && !errors.Is(err, arch.ErrTensor) {
				t.Errorf("%v wraps neither ErrConfig nor ErrTensor", err)
			}
		})
	}
}
